package vars

import (
	"crypto/rand"
	"encoding/hex"
	"github.com/culvert-go/culvert/internal/header"
	"net"
	"strconv"
	"strings"
)

// builtin returns one of nginx's own variables that are derived from the request alone; nil if
// there is none.
func builtin(name string) Getter {
	for _, group := range []map[string]Getter{
		requestVariables, connectionVariables, responseVariables, timeVariables, upstreamVariables,
		sslVariables, clientCertificateVariables, proxyProtocolVariables, novalue,
	} {
		if get, ok := group[name]; ok {
			return get
		}
	}
	return nil
}

// known returns a Getter of a variable that always has a value.
func known(get func(*Request) string) Getter {
	return func(r *Request) (string, bool) { return get(r), true }
}

// nonEmpty returns a Getter of a variable that has no value instead of an empty one.
func nonEmpty(get func(*Request) string) Getter {
	return func(r *Request) (string, bool) { s := get(r); return s, s != "" }
}

var requestVariables = map[string]Getter{
	"args":               nonEmpty(func(r *Request) string { return r.Args }),
	"query_string":       nonEmpty(func(r *Request) string { return r.Args }),
	"is_args":            known(isArgs),
	"content_length":     contentLength,
	"content_type":       nonEmpty(func(r *Request) string { return strings.Join(r.HTTP.Header["Content-Type"], ", ") }),
	"document_uri":       uri,
	"is_request_port":    known(func(r *Request) string { return prefixed(":", requestPort(r)) }),
	"msie":               known(msie),
	"request_body":       nonEmpty(requestBody),
	"request_body_file":  nonEmpty(requestBodyFile),
	"request_completion": known(requestCompletion),
	"request_port":       known(requestPort),
	"host":               known(func(r *Request) string { return r.Host }),
	"remote_user":        nonEmpty(remoteUser),
	"request":            nonEmpty(func(r *Request) string { return r.Line }),
	"request_id":         known(requestID),
	"request_length":     known(requestLength),
	"request_method":     nonEmpty(func(r *Request) string { return r.HTTP.Method }),
	"request_uri":        nonEmpty(func(r *Request) string { return r.RequestURI }),
	"server_name":        known(func(r *Request) string { return r.ServerName }),
	"uri":                uri,
}

// uri returns no value for a request line without a path, and "" for a malformed one.
func uri(r *Request) (string, bool) { return r.URI, r.URI != "" || r.Malformed }

func isArgs(r *Request) string {
	if r.Args == "" {
		return ""
	}
	return "?"
}

// none is the Getter of a variable that never has a value here.
func none(*Request) (string, bool) { return "", false }

// prefixed puts prefix before text unless that is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix
}

// requestPort returns the port in the client's Host.
func requestPort(r *Request) string {
	_, port, err := net.SplitHostPort(r.HTTP.Host)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n <= 0 || n > 65535 {
		return ""
	}
	return strings.TrimLeft(port, "0")
}

func requestCompletion(r *Request) string {
	if r.Complete {
		return "OK"
	}
	return ""
}

// contentLength returns the header field, or the length of a chunked body that was read.
func contentLength(r *Request) (string, bool) {
	s := r.HTTP.Header.Get("Content-Length")
	if s == "" && (r.HTTP.ContentLength > 0 || r.HTTP.ContentLength == 0 && r.Body != nil && r.Body.Len() == 0) {
		s = strconv.FormatInt(r.HTTP.ContentLength, 10)
	}
	return s, s != ""
}

func requestBody(r *Request) string {
	if r.Body == nil {
		return ""
	}
	return r.Body.Text()
}

func requestBodyFile(r *Request) string {
	if r.Body == nil {
		return ""
	}
	return r.Body.File()
}

func pipe(r *Request) string {
	if r.Pipelined {
		return "p"
	}
	return "."
}

func remoteUser(r *Request) string {
	user, _, _ := header.BasicAuth(r.HTTP)
	return user
}

// requestID returns 16 random bytes, the same at each use.
func requestID(r *Request) string {
	if r.values().id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		r.values().id = hex.EncodeToString(b[:])
	}
	return r.values().id
}

// requestLength counts the header as HTTP/1.1 would write it, and the body as far as its length
// was announced.
func requestLength(r *Request) string {
	if r.HeaderBytes > 0 {
		return strconv.FormatInt(int64(r.HeaderBytes)+max(r.HTTP.ContentLength, 0), 10)
	}
	n := len(r.Line) + len("\r\n\r\nHost: \r\n") + len(r.HTTP.Host)
	for name, lines := range r.HTTP.Header {
		for _, line := range lines {
			n += len(name) + len(line) + len(": \r\n")
		}
	}
	return strconv.FormatInt(int64(n)+max(r.HTTP.ContentLength, 0), 10)
}

// forwardedFor returns $proxy_add_x_forwarded_for: the client's list and the client.
func forwardedFor(r *Request) string {
	lines := r.HTTP.Header["X-Forwarded-For"]
	if len(lines) == 0 {
		return r.RemoteAddr()
	}
	return strings.Join(lines, ", ") + ", " + r.RemoteAddr()
}
