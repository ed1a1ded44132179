package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/http1"
)

var errContentLength = errors.New("a Content-Length that is not that of the content")

// checkLength refuses a request over HTTP/2 whose Content-Length can't be that of its content: it is malformed, and must not
// be forwarded (RFC 9113 section 8.1.1). net/http's server of HTTP/1 refuses such a request. That of HTTP/2 takes a field
// that is no number for 0, looks at the first one alone, and at none where the stream ends with the header: the target would
// get an empty request, or one of another length, as a whole one.
//
// A filter that takes a body away leaves http.NoBody, perhaps beside the client's field.
func checkLength(in *http.Request) *culvert.Error {
	if in.ProtoMajor < 2 {
		return nil
	}
	length, err := http1.ContentLength(in.Header["Content-Length"])
	if err != nil {
		return &culvert.Error{Kind: culvert.BadRequest, Err: err}
	}
	if length > 0 && in.ContentLength == 0 && in.Body != nil && in.Body != http.NoBody {
		return &culvert.Error{Kind: culvert.BadRequest, Err: errContentLength}
	}
	return nil
}

// awaitNone reads to the end of a body that was declared as empty, before a target gets the request: one with content is
// malformed (RFC 9113 section 8.1.1), and would look whole. It returns the request that is to be forwarded: where trailers
// stand behind the body, that is one without a length, since HTTP/1.1 has trailers behind chunks alone (RFC 9112 section 7.1.2).
func (s *bodySource) awaitNone(w http.ResponseWriter, in *http.Request, timeout time.Duration) (*http.Request, *culvert.Error) {
	s.client.Start(w, in, timeout)
	var one [1]byte
	_, err := io.ReadFull(&s.client, one[:])
	if err == nil {
		err = errContentLength
	}
	if err != io.EOF {
		return in, bodyFault(in, err)
	}
	for _, values := range in.Trailer {
		if values != nil {
			in = in.WithContext(in.Context())
			in.ContentLength = -1
			break
		}
	}
	return in, nil
}

// readDeclared reads the next bytes of a body that may have a declared length. Over HTTP/2 what it has read together with
// the last one is given when the stream has ended: with more content behind it the request is malformed (RFC 9113 section 8.1.1), and would look whole.
func (s *bodySource) readDeclared(p []byte) (int, error) {
	n, err := s.body.Read(p)
	length, read := s.in.ContentLength, s.read+int64(n)
	switch {
	case length <= 0:
	case read < length && err == io.EOF:
		err = errBodyConsumed
	case read > length:
		err = errLength // net/http's reader never gives more; a filter's may
	case read == length && err == nil && s.in.ProtoMajor >= 2:
		if err = awaitEnd(s.body); err == nil {
			return n, io.EOF
		}
		n = max(0, n-1)
	}
	return n, err
}
