package replay

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/http1"
)

var (
	// ErrContentLength is the error of a body that its Content-Length contradicts.
	ErrContentLength = errors.New("a Content-Length that is not that of the content")

	errTooLong = errors.New("more content than its Content-Length")
	// A filter has read the body and not put it back: a target that waited for the rest would wait for ever
	// (http-proxy-middleware#40).
	errConsumed = errors.New("the body was read before it came to the proxy")
)

// awaitEmpty reads to the end of a body that was declared as empty, before a target gets the request: one with content is
// malformed (RFC 9113 section 8.1.1), and would look whole. It returns the request that is to be forwarded: where trailers
// stand behind the body, that is one without a length, since HTTP/1.1 has trailers behind chunks alone (RFC 9112 section 7.1.2).
func (b *Body) awaitEmpty(client *clientside.Handle, in *http.Request, timeout time.Duration) (*http.Request, *culvert.Error) {
	b.client.Start(client, in, timeout)
	var one [1]byte
	_, err := io.ReadFull(&b.client, one[:])
	if err == nil {
		err = ErrContentLength
	}
	if err != io.EOF {
		return in, fault(in, err)
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

// readDeclared reads the next bytes, behind before ones, of a body that may have a declared length. Over HTTP/2 what it has
// read together with the last one is given when the stream has ended: with more content behind it the request is malformed
// (RFC 9113 section 8.1.1), and would look whole.
func (b *Body) readDeclared(p []byte, before int64) (int, error) {
	n, err := b.reader.Read(p)
	length, read := b.in.ContentLength, before+int64(n)
	switch {
	case length <= 0:
	case read < length && err == io.EOF:
		err = errConsumed
	case read > length:
		err = http1.ErrBodyLength // net/http's reader never gives more; a filter's may
	case read == length && err == nil && b.in.ProtoMajor >= 2:
		if err = AwaitEnd(b.reader); err == nil {
			return n, io.EOF
		}
		n = max(0, n-1)
	}
	return n, err
}

// AwaitEnd returns nil at the end of a body of which all that was declared has been read, and an error if there is more.
func AwaitEnd(body io.Reader) error {
	var one [1]byte
	switch _, err := io.ReadFull(body, one[:]); err {
	case nil:
		return errTooLong
	case io.EOF:
		return nil
	default:
		return err
	}
}
