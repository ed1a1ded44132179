package engine

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/replay"
)

// programBody is a request's body for a function of the program's: client_body_timeout bounds each read. The zero programBody is that
// of a request without one.
type programBody struct {
	clientbody.Body
	client   clientside.Handle
	started  bool
	passedOn atomic.Bool // a middleware has passed the request on: what serves it bounds its own reads
}

// startBody makes a programBody the body of r, a request for a function of the program's that responds with w.
func (x *exchange) startBody(w http.ResponseWriter, r *http.Request) *programBody {
	b := new(programBody)
	timeout := clientBodySlot.of(x.level).timeout
	if timeout <= 0 || r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodConnect { // a tunnel's bytes are no body
		return b
	}
	switch r.Body.(type) {
	case *replay.Again, clientbody.Whole, clientbody.Broken: // the client is not waited for
		return b
	}
	b.client.Start(w, r)
	b.Start(&b.client, r, timeout)
	b.started = true
	r.Body = b
	return b
}

// finish ends b with its function. hijacked reports whether that has taken the connection over, which is none of the server's then.
func (b *programBody) finish(hijacked bool) {
	if !b.started {
		return
	}
	if !hijacked && !b.passedOn.Load() {
		b.Finish()
	}
	b.client.End()
}

// replaces reports whether body is another one than the middleware was called with.
func (f *passage) replaces(body io.ReadCloser) bool {
	switch given := f.body.(type) {
	case *programBody:
		same, _ := body.(*programBody)
		return same != given
	case *replay.Again:
		same, _ := body.(*replay.Again)
		return same != given
	}
	return body != nil && body != http.NoBody
}

// adoptBody makes the body of r, which the middleware has passed on, the one that is served: the client's again if it is the same, else
// the middleware's in place of one that was read before. restore is called when r was served.
func (f *passage) adoptBody(r *http.Request) (restore func()) {
	x := f.x
	if !f.replaces(r.Body) {
		if b, ok := r.Body.(*programBody); ok {
			b.passedOn.Store(true)
			r.Body = x.HTTP.Body
		}
		return func() {}
	}
	read, shown := x.proxy.body, x.Body
	if read == nil {
		return func() {}
	}
	x.proxy.body, x.Body = nil, nil
	return func() {
		x.releaseBody()
		x.proxy.body, x.Body = read, shown
	}
}
