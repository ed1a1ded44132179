package simulate

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// unheld is net/http's transport for targets of HTTP/1.1, whose bodies are closed only while no reader holds a lock of net/http:
// a Read of the end of a response waits 50 ms for the request's own end, with the lock that Close needs, and time does not pass
// meanwhile (doc.go).
type unheld struct{ http.RoundTripper }

// heldAtMost is a little longer than the lock is held.
const heldAtMost = 50*time.Millisecond + time.Microsecond

// RoundTrip runs an exchange.
func (t unheld) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.RoundTripper.RoundTrip(r)
	}
	written := make(chan struct{})
	var once sync.Once
	trace := &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil { // else another connection may be used
			once.Do(func() { close(written) })
		}
	}}
	resp, err := t.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return resp, err
	}
	if _, upgraded := resp.Body.(io.Writer); !upgraded && resp.Body != http.NoBody {
		resp.Body = &unheldBody{body: resp.Body, written: written}
	}
	return resp, nil
}

// unheldBody is the body of a response to a request that has one.
type unheldBody struct {
	body    io.ReadCloser
	written <-chan struct{} // closed when the request has been

	mu    sync.Mutex
	ended chan struct{} // closed when the last Read has returned; nil: there was none
}

// Read reads.
func (b *unheldBody) Read(p []byte) (int, error) {
	ended := make(chan struct{})
	defer close(ended)
	b.mu.Lock()
	b.ended = ended
	b.mu.Unlock()
	return b.body.Read(p)
}

// Close closes the body. It first waits a moment for a Read that may have reached the end.
func (b *unheldBody) Close() error {
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	if ended != nil {
		held := time.NewTimer(heldAtMost)
		defer held.Stop()
		select {
		case <-ended:
		case <-b.written:
		case <-held.C:
		}
	}
	return b.body.Close()
}
