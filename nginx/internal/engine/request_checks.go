package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// receive settles what of a new request is known before its location is. As nginx it reads the request line by the settings of
// the server that TLS has named, or of the default server, and what follows the Host by those of the server of that name
// (ngx_http_process_request_line, ngx_http_process_request_headers). If x is to be refused, x.refused is set.
func (x *exchange) receive(r *http.Request) {
	v := x.socket.host(localIP(r))
	x.servedBy(route.Named[*server]{To: v.standard})
	if r.TLS != nil {
		x.chooseServer(v, hostName(r.TLS.ServerName))
	}
	if refusal := refusalOf(r.Context()); refusal != nil {
		x.enterRefused(refusal)
	} else {
		if r.RequestURI == "" { // http.NewRequest's, which a program passes to the handler by itself
			x.HTTP.RequestURI = r.URL.RequestURI()
		}
		x.Line = r.Method + " " + x.HTTP.RequestURI + " " + r.Proto
	}
	x.RequestURI = requestTarget(x.HTTP)
	limits := connectionSlot.of(v.standard.level)
	if x.HTTP.Method != "" {
		x.receiveLine(limits.lineBytes)
	}
	if x.refused != 0 && x.refusal.inLine {
		x.HTTP.Host, x.HTTP.Header = "", http.Header{} // nginx has not read them
	} else {
		x.receiveHost()
		x.chooseServer(v, x.Host)
		x.checkHeader(limits.lineBytes)
	}
	if x.cleartext {
		x.refuse(statusCleartext, "client sent plain HTTP request to HTTPS port")
	}
	if x.named = x.Host != ""; !x.named {
		x.Host = x.ServerName
	}
}

// servedBy has x served by a server.
func (x *exchange) servedBy(found route.Named[*server]) {
	s := found.To
	x.server, x.level, x.ServerName = s, s.level, s.firstName()
	if found.Regexp != nil {
		x.Capture(found.Groups, found.Regexp.Names())
	}
}

// chooseServer has x served by the server of a host name, or refused if that is not known.
func (x *exchange) chooseServer(v *virtual, host string) {
	found, err := v.choose(host)
	if err != nil {
		x.logPattern(err)
		x.refuse(http.StatusInternalServerError, "")
	}
	x.servedBy(found)
}

// receiveLine checks the request line, which must fit into max bytes, and sets the path, and $host if the target has one.
func (x *exchange) receiveLine(max int) {
	method := x.HTTP.Method
	if !validMethod(method) {
		x.refuseLine(http.StatusBadRequest, invalidMethod)
		return
	}
	if method == http.MethodConnect && x.HTTP.ProtoMajor >= 2 {
		return
	}
	authority, has, ok := targetHost(method, x.HTTP.RequestURI)
	if method == http.MethodConnect && ok {
		x.RequestURI = "/"
	}
	if len(x.Line)+len("\r\n") > max {
		x.refuseLine(http.StatusRequestURITooLong, tooLongURI)
	} else if !ok || !parseTarget(x) {
		x.refuseLine(http.StatusBadRequest, invalidRequest)
	} else if has && !x.refusal.inLine {
		if x.Host, ok = requestHost(authority); !ok {
			x.refuseLine(http.StatusBadRequest, "client sent invalid host in request line")
		}
	}
}

// receiveHost checks the Host field, and sets $host, unless the target has it.
func (x *exchange) receiveHost() {
	r := x.HTTP
	if r.Host == "" && !fieldnames.Of(r.Context()).Has("Host") {
		switch {
		case r.ProtoMajor >= 2:
			x.refuse(http.StatusBadRequest, "client sent neither \":authority\" nor \"Host\" header")
		case r.ProtoMinor > 0:
			x.refuse(http.StatusBadRequest, "client sent HTTP/1.1 request without \"Host\" header")
		}
		return
	}
	if x.Host != "" {
		return // a Host beside it is not known: the server has taken the target's (RFC 9112 section 3.2.2)
	}
	name, ok := requestHost(r.Host)
	if x.Host = name; !ok {
		x.refuse(http.StatusBadRequest, invalidHost)
	}
}

const invalidHost = "client sent invalid host header"

// unique are the fields that nginx refuses a request for in which they stand twice (ngx_http_process_unique_header_line).
var unique = []string{"Authorization", "Content-Range", "Expect", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
	"If-Unmodified-Since"}

// coded are those that the server takes out of the header.
var coded = []string{"Content-Length", "Transfer-Encoding", "Expect"}

// refuseDuplicates refuses a request with one of these fields twice. It reports whether it has. The values, which may be
// secret, are not logged.
func (x *exchange) refuseDuplicates() bool {
	for _, name := range unique {
		if len(x.HTTP.Header[name]) > 1 {
			x.refuse(http.StatusBadRequest, "client sent duplicate header line: \""+name+"\"")
			return true
		}
	}
	names := fieldnames.Of(x.HTTP.Context())
	for _, name := range coded {
		if linesOf(names, name) > 1 {
			x.refuse(http.StatusBadRequest, "client sent duplicate header line: \""+name+"\"")
			return true
		}
	}
	return false
}

// linesOf counts the lines of a field.
func linesOf(names fieldnames.List, field string) (n int) {
	for _, name := range names {
		if len(name) == len(field) && strings.EqualFold(name, field) {
			n++
		}
	}
	return n
}

// checkHeader refuses a request for its method or its header fields, each of which must fit into max bytes
// (ngx_http_process_request_header).
func (x *exchange) checkHeader(max int) {
	r := x.HTTP
	if x.misdirected() {
		x.refuse(http.StatusMisdirectedRequest, "client attempted to request the server name for which the negotiated protocol is disabled")
	}
	x.checkSize(max)
	if x.refused != 0 || x.refuseDuplicates() {
		return
	}
	switch r.Method {
	case http.MethodTrace:
		x.refuse(http.StatusMethodNotAllowed, "client sent TRACE method")
	case http.MethodConnect:
		x.checkConnect()
	}
}

// checkSize refuses a header with too many fields (max_headers), or with one that does not fit into a buffer.
func (x *exchange) checkSize(max int) {
	count := len(fieldnames.Of(x.HTTP.Context()))
	valid := headerFieldsSlot.of(x.level)
	lines := 0
	for name, values := range x.HTTP.Header {
		if valid.removeInvalid && !valid.valid(name) {
			count -= len(values) // nginx has not counted them
			continue
		}
		lines += len(values)
		for _, value := range values {
			if len(name)+len(": \r\n")+len(value) > max {
				x.refuse(tooLargeHeader, "client sent too long header line: \""+name+"...\"")
				return
			}
		}
	}
	if count <= 0 { // of HTTP/2, or of another server: the names are not kept
		count = lines
	}
	if count > *maxHeadersSlot.of(x.server.level) {
		x.refuse(tooLargeHeader, "client sent too many header lines")
	}
}
