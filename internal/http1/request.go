package http1

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/net/http/httpguts"
)

// ErrOther is the error of a request that this package does not write, since net/http changes it on its way.
var ErrOther = errors.New("http1: a request for net/http")

// appendHeader appends the header section of the call's request. What could end a line early, or declare another end of the
// body, is an error: it is never the target's. last is set if the connection ends with the exchange.
func (c *Call) appendHeader(b []byte, last bool) ([]byte, error) {
	r, f := c.Request, c.framing
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	if !plainHost(host) {
		return b, ErrOther
	}
	if !httpguts.ValidHeaderFieldName(r.Method) { // both are tokens
		return b, fmt.Errorf("invalid method %q", r.Method)
	}
	b = append(append(b, r.Method...), ' ')
	from := len(b)
	b = appendTarget(b, r)
	err := checkTarget(r.Method, b[from:])
	if err != nil {
		return b, err
	}
	b = append(b, " HTTP/1.1\r\n"...)
	if c.Names != nil {
		b, err = c.appendNamed(b, host, last)
	} else {
		b, err = appendUnnamed(b, r, f, host, last)
	}
	if err != nil {
		return b, err
	}
	return append(b, "\r\n"...), checkTrailers(r.Trailer)
}

// appendUnnamed appends the fields as http.Transport writes them, for a body of the framing that framingOf returns.
func appendUnnamed(b []byte, r *http.Request, f requestFraming, host string, last bool) (_ []byte, err error) {
	b = append(append(append(b, "Host: "...), host...), "\r\n"...)
	if agent := r.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		if b, err = appendField(b, "User-Agent", agent[0]); err != nil {
			return b, err
		}
	}
	if (last || r.Close) && !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "close") {
		b = append(b, "Connection: close\r\n"...)
	}
	b = f.append(b, r)
	for name, values := range r.Header {
		switch name {
		case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		for _, value := range values {
			if b, err = appendField(b, name, value); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// plainHost reports whether the host is sent as it is: what is no ASCII, or has a zone, is
// changed by net/http.
func plainHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if c <= ' ' || c >= 0x7f || c == '%' || c == '/' || c == '\\' {
			return false
		}
	}
	return host != "" && httpguts.ValidHostHeader(host)
}

// appendField appends a field's line.
func appendField(b []byte, name, value string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return b, err
	}
	if err := checkValue(name, value); err != nil {
		return b, err
	}
	b = append(append(b, name...), ": "...)
	b = append(b, trimBlanks(value)...)
	return append(b, "\r\n"...), nil
}

// requestFraming is how the header of a request declares where its body ends.
type requestFraming struct {
	chunked  bool
	length   int64 // if it is not chunked
	declared bool  // by a Content-Length
}

// framingOf returns what net/http chooses for r, whose Body is nil if there is none.
func framingOf(r *http.Request) requestFraming {
	switch {
	case r.Body == nil:
		return requestFraming{declared: r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch}
	case r.ContentLength > 0 && !(len(r.TransferEncoding) == 1 && r.TransferEncoding[0] == "chunked"):
		return requestFraming{length: r.ContentLength, declared: true}
	}
	return requestFraming{chunked: true}
}

func (f requestFraming) append(b []byte, r *http.Request) []byte {
	if !f.chunked {
		if f.declared {
			b = append(strconv.AppendInt(append(b, "Content-Length: "...), f.length, 10), "\r\n"...)
		}
		return b
	}
	b = append(b, "Transfer-Encoding: chunked\r\n"...)
	separator := "Trailer: "
	for name := range r.Trailer {
		b = append(append(b, separator...), name...)
		separator = ","
	}
	if separator == "," {
		b = append(b, "\r\n"...)
	}
	return b
}
