package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// requestBody is the client's body on its way to the target. It remembers a
// failed read, which tells the client's fault from the target's, and keeps the
// transport from closing it, since the next target may still need it.
type requestBody struct {
	body   io.ReadCloser // nil: there is none
	wait   *headerTimer
	expect *expectation // nil: the client waits for nothing
	mu     sync.Mutex
	err    error
}

// wrap makes b the body of in, if in has one.
func (b *requestBody) wrap(in *http.Request, wait *headerTimer) {
	if in.ContentLength != 0 && in.Body != nil {
		b.body, b.wait, b.expect = in.Body, wait, newExpectation(in)
	}
}

// attach makes b the body of out.
func (b *requestBody) attach(out *http.Request) {
	out.GetBody = nil
	if b.body == nil {
		out.Body = nil
		return
	}
	out.Body = b
}

func (b *requestBody) Read(p []byte) (int, error) {
	if b.expect.refused() {
		return 0, errNotWanted
	}
	b.wait.pause()
	n, err := b.body.Read(p)
	b.wait.resume()
	if err != nil && err != io.EOF {
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

// Close does nothing: net/http's server closes the body after the handler.
func (b *requestBody) Close() error { return nil }

// failure returns the error of a failed read, nil if all went well so far.
func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// headerTimer cancels an exchange whose target keeps the head of its answer
// back. While the client is the one who is waited for, it stands still.
type headerTimer struct {
	mu      sync.Mutex
	after   time.Duration
	timer   *time.Timer // nil: no bound
	stopped bool
}

// start sets the timer for the first time; after 0 means no bound.
func (t *headerTimer) start(after time.Duration, cancel context.CancelCauseFunc) {
	if after > 0 {
		t.after = after
		t.timer = time.AfterFunc(after, func() { cancel(errHeaderTimeout) })
	}
}

func (t *headerTimer) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *headerTimer) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && !t.stopped {
		t.timer.Reset(t.after)
	}
}

// stop ends the timer for good; a body that is still being sent afterwards does
// not start it again.
func (t *headerTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
