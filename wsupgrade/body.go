package wsupgrade

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/errs"
)

// maxBody bounds the body of an upgrade. That of a "docker exec" is a small JSON object.
const maxBody = 64 << 10

// hasBody reports whether the upgrade that in requests has a body. That of an extended CONNECT
// belongs to the tunnel.
func hasBody(in *http.Request) bool {
	_, stream := extended(in)
	return !stream && in.ContentLength != 0 && in.Body != nil
}

// boundClientRead bounds how long the client may take for the remaining body of its request. It
// removes the deadline of a request that is complete: should the server's ReadTimeout pass during
// the handshake, net/http would report that the client has gone. For a body that is never read
// net/http waits all the same, before it sends the response.
func (f *Forwarder) boundClientRead(w http.ResponseWriter, in *http.Request) {
	deadline := time.Time{}
	if hasBody(in) && clientbody.Remains(in) {
		deadline = time.Now().Add(f.handshakeTimeout)
	}
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
}

// readBody reads in's body to its end, within the handshake timeout: the connection is taken over
// after it, and it is sent with a length, so that a target that does not switch can't take a part
// of it for another request. It returns nil if there is none. What was read replaces in.Body: a
// retry on another target sends the same.
func (f *Forwarder) readBody(w http.ResponseWriter, in *http.Request) ([]byte, error) {
	if !hasBody(in) {
		return nil, nil
	}
	if whole, ok := in.Body.(clientbody.Whole); ok {
		return whole.Content, nil
	}
	f.boundClientRead(w, in)
	body, err := io.ReadAll(io.LimitReader(in.Body, maxBody+1))
	switch {
	case err != nil:
	case len(body) > maxBody:
		err = &http.MaxBytesError{Limit: maxBody}
	case in.ContentLength >= 0 && int64(len(body)) != in.ContentLength:
		err = fmt.Errorf("a body of %d bytes, with Content-Length %d", len(body), in.ContentLength)
	}
	if err != nil {
		in.Body = clientbody.Broken{Err: err} // the rest of it must not look like a whole one
		return nil, bodyError(in, err)
	}
	in.Body = clientbody.Whole{Reader: bytes.NewReader(body), Content: body}
	f.boundClientRead(w, in)
	return body, nil
}

// bodyError gives a failure of reading the client's body its kind.
func bodyError(in *http.Request, err error) error {
	e := &culvert.Error{Kind: culvert.BadRequest, Err: err}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		e.Kind = culvert.BodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http cancels the context as well
		e.Kind = culvert.BodyTooSlow
	case in.Context().Err() != nil:
		e.Kind = errs.KindOfContext(in.Context())
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Kind = culvert.ClientGone
	}
	return e
}
