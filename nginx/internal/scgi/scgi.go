// Package scgi speaks SCGI (https://python.ca/scgi/protocol.txt).
package scgi

import (
	"bufio"
	"io"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// Protocol returns the protocol. params returns the parameters of a request, without CONTENT_LENGTH.
func Protocol(params func(*http.Request) []cgi.Param) backend.Protocol { return protocol{params} }

type protocol struct {
	params func(*http.Request) []cgi.Param
}

// Prepare implements backend.Protocol: a netstring of the parameters, the length being the first, and the body.
func (p protocol) Prepare(r *http.Request) (func(*bufio.Writer) error, error) {
	b := []byte("CONTENT_LENGTH\x00" + strconv.FormatInt(max(0, r.ContentLength), 10) + "\x00")
	for _, param := range p.params(r) {
		if param.Name != "CONTENT_LENGTH" {
			b = append(append(append(append(b, param.Name...), 0), param.Value...), 0)
		}
	}
	return func(w *bufio.Writer) error {
		w.WriteString(strconv.Itoa(len(b)))
		w.WriteByte(':')
		w.Write(b)
		w.WriteByte(',')
		return cgi.CopyBody(w, r)
	}, nil
}

// ReadResponse implements backend.Protocol. A response ends with its connection.
func (p protocol) ReadResponse(b *bufio.Reader, r *http.Request) (*http.Response, func() bool, error) {
	resp, err := cgi.ReadHeader(r.Context(), b, true)
	if err != nil {
		return nil, nil, err
	}
	resp.Body = body(resp, b, r)
	return resp, func() bool { return false }, nil
}

// body returns the content; a response to HEAD has none, regardless of its header.
func body(resp *http.Response, b io.Reader, r *http.Request) io.ReadCloser {
	if r.Method == http.MethodHead {
		return http.NoBody
	}
	return cgi.Body(resp, b)
}
