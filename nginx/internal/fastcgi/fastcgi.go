// Package fastcgi speaks FastCGI 1.0 (https://fastcgi-archives.github.io/FastCGI_Specification.html) as a web server does: a
// responder, one request a connection at a time.
package fastcgi

import (
	"bufio"
	"errors"
	"io"
	"net/http"

	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// Options are those of a Protocol.
type Options struct {
	// Params returns the parameters of a request.
	Params func(*http.Request) []cgi.Param
	// KeepConn requests that the program leave the connection open after a response.
	KeepConn bool
	// Stderr is called with what the program has written to its standard error, on the goroutine that reads the response. An
	// error ends the exchange.
	Stderr func(*http.Request, []byte) error
}

// Protocol returns the protocol.
func Protocol(o Options) backend.Protocol { return protocol{o} }

type protocol struct{ o Options }

// errTooBig is that of parameters that do not fit into one record, as in nginx.
var errTooBig = errors.New("fastcgi request record is too big")

// Prepare implements backend.Protocol.
func (p protocol) Prepare(r *http.Request) (func(*bufio.Writer) error, error) {
	var params []byte
	for _, param := range p.o.Params(r) {
		params = appendParam(params, param)
	}
	if len(params) > most {
		return nil, errTooBig
	}
	return func(w *bufio.Writer) error { return p.write(w, r, params) }, nil
}

func (p protocol) write(w *bufio.Writer, r *http.Request, params []byte) error {
	begin := [8]byte{1: responder}
	if p.o.KeepConn {
		begin[2] = keepConn
	}
	writeRecord(w, typeBegin, begin[:])
	if len(params) > 0 {
		writeRecord(w, typeParams, params)
	}
	writeRecord(w, typeParams, nil)
	err := cgi.EachPiece(r, func(piece []byte) error {
		writeRecord(w, typeStdin, piece)
		return cgi.FlushBefore(w, r)
	})
	if err != nil {
		return err
	}
	writeRecord(w, typeStdin, nil)
	return nil
}

// ReadResponse implements backend.Protocol.
func (p protocol) ReadResponse(b *bufio.Reader, r *http.Request) (*http.Response, func() bool, error) {
	s := &stdout{b: b, stderr: func(text []byte) error {
		if p.o.Stderr == nil {
			return nil
		}
		return p.o.Stderr(r, text)
	}}
	content := bufio.NewReader(s)
	resp, err := cgi.ReadHeader(r.Context(), content, false)
	if err != nil {
		return nil, nil, err
	}
	whole := &wholeBody{content, s}
	resp.Body = cgi.Body(resp, whole)
	if r.Method == http.MethodHead {
		resp.Body = io.NopCloser(&discarded{whole})
	}
	return resp, func() bool { return p.o.KeepConn && content.Buffered() == 0 && s.finish() }, nil
}

// wholeBody ends only where the program says so: a connection that ends before is an error.
type wholeBody struct {
	r *bufio.Reader
	s *stdout
}

func (w *wholeBody) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err == io.EOF && !w.s.closed && !w.s.done {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// discarded has the end of a body, but none of its content: the one to a HEAD.
type discarded struct{ r io.Reader }

func (d *discarded) Read([]byte) (int, error) {
	_, err := io.Copy(io.Discard, d.r)
	if err == nil {
		err = io.EOF
	}
	return 0, err
}
