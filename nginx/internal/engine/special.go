package engine

import (
	"net/http"
	"strconv"
)

// special sends an error page: one of the configuration, which may end with another status, or
// the built-in one (ngx_http_special_response_handler).
func (x *exchange) special(status int) int {
	if status == 444 || x.unanswered {
		x.errStatus, x.unanswered = status, true
		panic(http.ErrAbortHandler) // close the connection without a response
	}
	if closesAfter(status) && x.HTTP.ProtoMajor == 1 { // HTTP/2 ends only the stream
		x.w.Header().Set("Connection", "close")
	}
	x.errStatus, x.Status = status, status // the page's name may contain $status
	if !x.failed && x.redirects <= maxRedirects {
		s := errorPageSlot.of(x.level)
		if page := s.pageFor(status); page != nil {
			x.failed = !s.recursive
			return page.serve(x)
		}
	}
	if discardBody(x) != 0 {
		x.w.Header().Set("Connection", "close")
	}
	return x.filtered(x.level.phases.body, x.w, func(x *exchange, w http.ResponseWriter) int {
		if x.refreshes(x.errStatus, false) {
			x.refresh(w)
		} else {
			builtinPage(x, w, x.errStatus)
		}
		return 0
	})
}

// closesAfter reports whether nginx closes the connection after an error with the status: what
// follows on it may not be what it seems.
func closesAfter(status int) bool {
	switch status {
	case 400, 413, 414, 494, 495, 496, 497, 500, 501:
		return true
	}
	return false
}

// builtinPage writes nginx's own page for a status.
func builtinPage(x *exchange, w http.ResponseWriter, status int) {
	h := w.Header()
	if status < 300 || status == http.StatusNotModified {
		w.WriteHeader(status)
		return
	}
	shown := status
	title, ok := titles[status]
	if neverSent(status) {
		shown = http.StatusBadRequest
	}
	if !ok {
		h["Content-Type"] = nil
		h.Set("Content-Length", "0")
		w.WriteHeader(shown)
		return
	}
	heading := strconv.Itoa(shown) + " " + title
	own := neverSent(status)
	h1 := heading
	if own {
		h1 = "400 Bad Request"
	}
	page := "<html>\r\n<head><title>" + heading + "</title></head>\r\n<body>\r\n<center><h1>" + h1 +
		"</h1></center>\r\n"
	if own {
		page += "<center>" + title + "</center>\r\n"
	}
	page += "<hr><center>" + *tokensSlot.of(x.level) + "</center>\r\n</body>\r\n</html>\r\n"
	h.Set("Content-Type", "text/html")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(shown)
	if x.HTTP.Method != http.MethodHead {
		_, _ = w.Write([]byte(page))
	}
}

// neverSent reports whether a status is one of nginx's own that clients see as 400.
func neverSent(status int) bool { return status >= 494 && status <= 497 }

// titles are those of nginx's pages, which are not net/http's.
var titles = map[int]string{
	301: "Moved Permanently",
	302: "Found",
	303: "See Other",
	307: "Temporary Redirect",
	308: "Permanent Redirect",
	400: "Bad Request",
	401: "Authorization Required",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	405: "Not Allowed",
	406: "Not Acceptable",
	407: "Proxy Authentication Required",
	408: "Request Time-out",
	409: "Conflict",
	410: "Gone",
	411: "Length Required",
	412: "Precondition Failed",
	413: "Request Entity Too Large",
	414: "Request-URI Too Large",
	415: "Unsupported Media Type",
	416: "Requested Range Not Satisfiable",
	421: "Misdirected Request",
	426: "Upgrade Required",
	429: "Too Many Requests",
	494: "Request Header Or Cookie Too Large",
	495: "The SSL certificate error",
	496: "No required SSL certificate was sent",
	497: "The plain HTTP request was sent to HTTPS port",
	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Temporarily Unavailable",
	504: "Gateway Time-out",
	505: "HTTP Version Not Supported",
	507: "Insufficient Storage",
}
