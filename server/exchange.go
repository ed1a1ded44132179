package server

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/http1"
)

// exchange is a request with all that its handler is given for it, in one piece of memory. It is made anew for each request,
// since a handler may keep what it was given, but for handlers that do not (lend.go).
type exchange struct {
	c    *conn
	req  http.Request
	url  url.URL
	ctx  requestContext
	w    writer
	body body

	headerSize int  // of the request
	pipelined  bool // the request was received with the one before

	values [8]string // memory for the request's fields and their names, unless lent has more

	refusal *Refusal // no handler sees the request

	lent *lent       // not nil: the memory may be used again
	held atomic.Bool // something may hold it nevertheless
}

// incomings holds what header sections are read with.
var incomings = sync.Pool{New: func() any { return new(http1.Incoming) }}

// blank is what requests are made of: only WithContext sets a request's context.
var blank http.Request

// readRequest reads a request's header. One that is refused it passes to refuse.
func (c *conn) readRequest() (x *exchange, err error) {
	var readUntil time.Time
	if d := c.server.ReadTimeout; d > 0 {
		readUntil = time.Now().Add(d)
	}
	x = c.newExchange()
	in := incomings.Get().(*http1.Incoming)
	in.KeepNames = c.server.KeepFieldNames
	if in.Memory = x.values[:]; x.lent != nil {
		in.Map, in.Memory = x.lent.fields, x.lent.values[:]
	}
	x.pipelined = c.pipelined
	line, err := in.Read(c.r, c.server.maxHeader(), c)
	x.headerSize = in.Size
	if !c.endHeader() {
		return nil, net.ErrClosed
	}
	if err != nil {
		c.refuse(in, line, err)
		return nil, err
	}
	if err = x.start(in); err == nil && c.cleartext {
		err = http1.ErrCleartext
		in.Fields.Set("Host", x.req.Host)
	}
	if err != nil {
		line := in.Method + " " + in.Target + " " + in.Proto
		c.refuse(in, line[:min(len(line), maxLine)], err)
		return nil, err
	}
	if c.lineEnds = 0; in.Method == http.MethodPost {
		c.lineEnds = uint8(2 * len("\r\n"))
	}
	c.boundReads(readUntil)
	*in = http1.Incoming{}
	incomings.Put(in)
	return x, nil
}

// start makes the request of its header section. The error is a *http1.Refused.
func (x *exchange) start(in *http1.Incoming) error {
	f, err := in.Framing()
	if err != nil {
		return err
	}
	c := x.c
	x.ctx.c, x.ctx.parent, x.ctx.looked = c, c.ctx, time.Now()
	x.req = *blank.WithContext(&x.ctx)
	r := &x.req
	if r.URL, err = x.parseURL(in.Method, in.Target); err != nil {
		return http1.ErrTarget
	}
	r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor = in.Method, in.Target, in.Proto, in.Major, in.Minor
	x.ctx.names = in.Names // nil, unless the server keeps them
	r.Header, r.Trailer, r.Close = in.Fields, f.Trailer, f.Close
	r.RemoteAddr, r.TLS = c.remoteAddr, c.tls
	if r.Host = r.URL.Host; r.Host == "" { // RFC 9112 section 3.2.2
		r.Host = r.Header.Get("Host")
	}
	x.startBody(f)
	if err := x.startWriter(); err != nil {
		return err
	}
	delete(r.Header, "Host")
	fixPragma(r.Header)
	return nil
}

// startBody makes the request's body.
func (x *exchange) startBody(f http1.Framing) {
	r, b := &x.req, &x.body
	b.x = x
	r.ContentLength = f.Length
	var trailer func(http.Header)
	if f.Chunked {
		r.ContentLength = -1
		r.TransferEncoding = []string{"chunked"}
		trailer = func(fields http.Header) { b.trailer = fields }
	}
	b.content.StartRequest(x.c.r, f, x.c.server.maxHeader(), trailer)
	r.Body = b
	if b.content.Whole() {
		r.Body = http.NoBody
		b.ended.Store(true)
	}
}

// addTrailer adds what was received behind the body, when the handler has read that to its end: not where the server
// has, since the handler may use the request elsewhere.
func (x *exchange) addTrailer(fields http.Header) {
	if x.req.Trailer == nil {
		x.req.Trailer = fields
		return
	}
	for name, values := range fields {
		x.req.Trailer[name] = values
	}
}

// startWriter prepares the response by what the request says of it.
func (x *exchange) startWriter() error {
	r, w := &x.req, &x.w
	w.x, w.declared = x, -1
	w.http11, w.head = r.ProtoMinor > 0, r.Method == http.MethodHead
	connection := r.Header["Connection"]
	w.wantsClose = r.Close || httpguts.HeaderValuesContainsToken(connection, "close")
	w.wants10KeepAlive = !w.http11 && httpguts.HeaderValuesContainsToken(connection, "keep-alive")
	w.mayContinue.Store(w.http11)
	if expect := r.Header["Expect"]; len(expect) > 0 {
		switch {
		case httpguts.HeaderValuesContainsToken(expect[:1], "100-continue"):
			x.body.expects = w.http11 && r.Body != http.NoBody
		case expect[0] != "":
			return http1.ErrExpectation
		}
	}
	return nil
}

// fixPragma makes of the field of HTTP/1.0 the one of HTTP/1.1 (RFC 9111 section 5.4), as net/http does.
func fixPragma(h http.Header) {
	if p := h["Pragma"]; len(p) > 0 && p[0] == "no-cache" && h["Cache-Control"] == nil {
		h["Cache-Control"] = []string{"no-cache"}
	}
}

// parseURL parses a request's target as http.ReadRequest does.
func (x *exchange) parseURL(method, target string) (*url.URL, error) {
	if parsePath(&x.url, target) {
		return &x.url, nil
	}
	authority := method == http.MethodConnect && target[0] != '/'
	if authority {
		target = "http://" + target
	}
	u, err := url.ParseRequestURI(target)
	if err == nil && authority {
		u.Scheme = ""
	}
	return u, err
}

// parsePath parses a target that is a path whose bytes stand for themselves, with a query or without one. It reports
// false for others.
func parsePath(u *url.URL, target string) bool {
	path, query, found := strings.Cut(target, "?")
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		if !plain[path[i]] {
			return false
		}
	}
	u.Path, u.RawQuery, u.ForceQuery = path, query, found && query == ""
	return true
}

// plain are the bytes that url.URL.EscapedPath leaves as they are.
var plain = func() (table [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@" {
		table[c] = true
	}
	return table
}()
