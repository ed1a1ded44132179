package engine

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
)

// formatHeader has the final header written as nginx writes it (ngx_http_header_filter): the fields in its order, with the
// names as the upstream and the configuration spell them. A server that can't writes its own.
func (x *exchange) formatHeader(h http.Header) {
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // nginx guesses none of the content
	}
	if (x.Status == http.StatusSwitchingProtocols || x.HTTP.Method == http.MethodConnect) && h["Date"] == nil {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat)) // of others the server does
	}
	if x.Status == http.StatusSwitchingProtocols {
		h["Connection"] = []string{"upgrade"} // however the upstream has spelt it
	}
	clientside.FormatHeader(x.w, fieldnames.Format{
		Names: x.headerNames(), Status: x.statusText(), HTTP11: true, Explicit: true, Unmeasured: true,
	})
}

// headerNames returns the names of the header's fields: those that nginx's last filter writes by itself, those of the
// upstream, and those that its modules add.
func (x *exchange) headerNames() fieldnames.List {
	upstream := x.upstreamNames()
	added := *addHeaderSlot.of(x.level)
	names := fieldnames.List(x.namesRoom[:0])
	unless := func(theirs bool, name string) {
		if !theirs || !upstream.Has(name) {
			names = append(names, name)
		}
	}
	unless(x.passes("Server"), "Server")
	unless(x.passes("Date"), "Date")
	own := func(name string) {
		if n := linesAdded(x, added, name); n == 0 || len(x.Header[http.CanonicalHeaderKey(name)]) > n {
			names = append(names, name)
		}
	}
	own("Content-Type")
	names = append(names, "Content-Length")
	if !slices.ContainsFunc(added, func(h header) bool { return h.name == "Last-Modified" && h.applies(x) }) {
		unless(true, "Last-Modified")
	}
	if x.madeAbsolute {
		names = append(names, "Location")
	}
	names = append(names, "Transfer-Encoding", "Connection", "Keep-Alive")
	if x.gzip.varies {
		names = append(names, "Vary")
	} else if !upstream.Has("Vary") {
		own("Vary")
	}
	names = append(names, upstream...)
	own("Location")
	own("WWW-Authenticate")
	names = append(names, "Proxy-Authenticate", "ETag", "Allow")
	own("Expires")
	own("Cache-Control")
	names = appendSpelt(names, added)
	names = appendSpelt(names, *addTrailerSlot.of(x.level))
	return append(names, "Set-Cookie", "P3P", "Content-Encoding", "Accept-Ranges", "Content-Range")
}

// appendSpelt appends the names of headers as the configuration spells them.
func appendSpelt(names fieldnames.List, headers []header) fieldnames.List {
	for _, h := range headers {
		names = append(names, h.spelt)
	}
	return names
}

// upstreamNames returns the names of the fields that are an upstream's.
func (x *exchange) upstreamNames() fieldnames.List {
	switch {
	case !x.proxy.responded:
		return x.proxy.kept
	case x.proxy.kept == nil:
		return x.proxy.names
	}
	return slices.Concat(x.proxy.kept, x.proxy.names)
}

// linesAdded returns how many lines of a field the add_headers of a level have added: those have the places of these.
func linesAdded(x *exchange, added []header, name string) (n int) {
	for _, h := range added {
		if strings.EqualFold(h.name, name) && h.applies(x) {
			n++
		}
	}
	return n
}

// passes reports whether the client receives the upstream's field of this name.
func (x *exchange) passes(name string) bool {
	if !x.proxy.responded {
		return false
	}
	f := (*passSlot.of(x.level)).family
	return !f.hides(f.slot.of(x.level), name)
}

// statusText returns the status with the reason: the upstream's, or nginx's own. Many statuses have none.
func (x *exchange) statusText() string {
	reason := reasons[x.Status]
	if x.proxy.responded && x.errStatus == 0 && x.proxy.reason != "" {
		reason = x.proxy.reason
	}
	if x.Status == http.StatusOK && reason == "OK" {
		return "200 OK" // that of most responses, without memory of its own
	}
	return strconv.Itoa(x.Status) + " " + reason
}

// reasons are nginx's.
var reasons = map[int]string{
	200: "OK",
	201: "Created",
	202: "Accepted",
	204: "No Content",
	206: "Partial Content",
	301: "Moved Permanently",
	302: "Moved Temporarily",
	303: "See Other",
	304: "Not Modified",
	307: "Temporary Redirect",
	308: "Permanent Redirect",
	400: "Bad Request",
	401: "Unauthorized",
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
	429: "Too Many Requests",
	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Temporarily Unavailable",
	504: "Gateway Time-out",
	505: "HTTP Version Not Supported",
	507: "Insufficient Storage",
}
