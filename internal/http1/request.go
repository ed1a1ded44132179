package http1

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ErrOther is of a request that this package does not write: net/http changes it on its way.
var ErrOther = errors.New("http1: a request for net/http")

// AppendHead appends the head of r, as http.Transport writes it, for a body of the framing
// that FramingOf returns. What could end a line early, or say that the body ends elsewhere, is an error.
func AppendHead(b []byte, r *http.Request, f Framing, last bool) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(r.Method) { // both are tokens
		return b, fmt.Errorf("invalid method %q", r.Method)
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	if !plainHost(host) {
		return b, ErrOther
	}
	b = append(append(b, r.Method...), ' ')
	b, err := appendTarget(b, r.URL)
	if err != nil {
		return b, err
	}
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)
	if agent := r.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		if b, err = AppendField(b, "User-Agent", agent[0]); err != nil {
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
			if b, err = AppendField(b, name, value); err != nil {
				return b, err
			}
		}
	}
	for name := range r.Trailer {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) {
			return b, fmt.Errorf("invalid trailer %q", name)
		}
	}
	return append(b, "\r\n"...), nil
}

// plainHost says whether the host goes out as it is: what is no ASCII, or has a zone, net/http
// changes, and what is no host it leaves out.
func plainHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if c <= ' ' || c >= 0x7f || c == '%' || c == '/' || c == '\\' {
			return false
		}
	}
	return host != "" && httpguts.ValidHostHeader(host)
}

// appendTarget is url.URL.RequestURI.
func appendTarget(b []byte, u *url.URL) ([]byte, error) {
	from := len(b)
	switch {
	case u.Opaque == "":
		b = append(b, u.RequestURI()...)
	default:
		if strings.HasPrefix(u.Opaque, "//") {
			b = append(append(b, u.Scheme...), ':')
		}
		b = append(b, u.Opaque...)
		if u.ForceQuery || u.RawQuery != "" {
			b = append(append(b, '?'), u.RawQuery...)
		}
	}
	for _, c := range b[from:] {
		if c < ' ' || c == 0x7f {
			return b, errors.New("control character in the request target")
		}
		if c == ' ' {
			return b, ErrOther
		}
	}
	return b, nil
}

// AppendField appends a field's line.
func AppendField(b []byte, name, value string) ([]byte, error) {
	if !httpguts.ValidHeaderFieldName(name) {
		return b, fmt.Errorf("invalid header field name %q", name)
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return b, fmt.Errorf("invalid header field value for %q", name)
	}
	b = append(append(b, name...), ": "...)
	b = append(b, strings.Trim(value, " \t")...)
	return append(b, "\r\n"...), nil
}

// Framing is how the end of a request's body is told.
type Framing struct {
	Chunked bool
	Length  int64 // if it is not chunked
	said    bool
}

// FramingOf is what net/http chooses for r, whose Body is nil if there is none.
func FramingOf(r *http.Request) Framing {
	switch {
	case r.Body == nil:
		return Framing{said: r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch}
	case r.ContentLength > 0:
		return Framing{Length: r.ContentLength, said: true}
	}
	return Framing{Chunked: true}
}

func (f Framing) append(b []byte, r *http.Request) []byte {
	if !f.Chunked {
		if f.said {
			b = append(strconv.AppendInt(append(b, "Content-Length: "...), f.Length, 10), "\r\n"...)
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
