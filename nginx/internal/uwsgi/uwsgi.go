// Package uwsgi speaks the protocol of uWSGI (https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html).
package uwsgi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// Options are those of a Protocol.
type Options struct {
	// Params returns the parameters of a request.
	Params func(*http.Request) []cgi.Param
	// Modifier1 and Modifier2 select the plugin that gets the request. 0 and 0 is WSGI.
	Modifier1, Modifier2 byte
	// Raw is sent between the parameters and the body.
	Raw string
}

// Protocol returns the protocol.
func Protocol(o Options) backend.Protocol { return protocol{o} }

type protocol struct{ o Options }

// Prepare implements backend.Protocol.
func (p protocol) Prepare(r *http.Request) (func(*bufio.Writer) error, error) {
	b, err := appendParams(nil, p.o.Params(r))
	if err != nil {
		return nil, err
	}
	return func(w *bufio.Writer) error {
		w.Write([]byte{p.o.Modifier1, byte(len(b)), byte(len(b) >> 8), p.o.Modifier2})
		w.Write(b)
		w.WriteString(p.o.Raw)
		return cgi.CopyBody(w, r)
	}, nil
}

func appendParams(b []byte, list []cgi.Param) ([]byte, error) {
	for _, param := range list {
		if len(b)+4+len(param.Name)+len(param.Value) > 65535 {
			return nil, errors.New("uwsgi request is too big: over 65535")
		}
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(param.Name))), param.Name...)
		b = append(binary.LittleEndian.AppendUint16(b, uint16(len(param.Value))), param.Value...)
	}
	return b, nil
}

// ReadResponse implements backend.Protocol. A response ends with its connection.
func (p protocol) ReadResponse(b *bufio.Reader, r *http.Request) (*http.Response, func() bool, error) {
	resp, err := cgi.ReadHeader(r.Context(), b, true)
	if err != nil {
		return nil, nil, err
	}
	resp.Body = cgi.Body(resp, b)
	if r.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp, func() bool { return false }, nil
}
