package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// leaseKey is that of the current lease of a call in its context: the transport learns of it which target not to hedge to.
type leaseKey struct{}

// withLease makes room for the lease.
func withLease(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), leaseKey{}, new(upstream.Lease))))
	})
}

// leasing is a group whose requests have the picked target for the transport.
type leasing struct{ *upstream.Group }

// Pick implements upstream.Picker.
func (l leasing) Pick(ctx context.Context, r *http.Request, tried ...upstream.Lease) (upstream.Lease, error) {
	lease, err := l.Group.Pick(ctx, r, tried...)
	if current, ok := r.Context().Value(leaseKey{}).(*upstream.Lease); ok && err == nil {
		*current = lease
	}
	return lease, err
}

// hedging sends a call that takes long to a second target, too, and takes the first response. proxy.Retry.Hedge does that
// for requests without a body only, and each call has one.
type hedging struct {
	group  *upstream.Group
	next   http.RoundTripper
	after  time.Duration
	traces tracing
}

// attempt is one of the two.
type attempt struct {
	cancel context.CancelFunc
	resp   *http.Response
	err    error
}

// RoundTrip implements http.RoundTripper.
func (h *hedging) RoundTrip(r *http.Request) (*http.Response, error) {
	message, err := io.ReadAll(r.Body) // of bounded length: proxy.Options.RequestBuffer holds it
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	ended := make(chan *attempt, 2)
	running := map[*attempt]bool{send(ended, r, message, h.next.RoundTrip): true}
	timer := time.NewTimer(h.after)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if a := h.second(ended, r, message); a != nil {
				running[a] = true
			}
		case a := <-ended:
			delete(running, a)
			if len(running) > 0 && (a.err != nil || isUnavailable(a.resp)) {
				a.discard()
				continue
			}
			abandon(running, ended)
			return a.resp, a.err
		}
	}
}

// send begins an attempt.
func send(ended chan<- *attempt, r *http.Request, message []byte, roundTrip func(*http.Request) (*http.Response, error)) *attempt {
	ctx, cancel := context.WithCancel(r.Context())
	out := r.Clone(ctx)
	out.Body = io.NopCloser(bytes.NewReader(message))
	out.ContentLength = int64(len(message))
	a := &attempt{cancel: cancel}
	go func() {
		if a.resp, a.err = roundTrip(out); a.err != nil {
			cancel()
		} else {
			a.resp.Body = &onClose{ReadCloser: a.resp.Body, f: cancel}
		}
		ended <- a
	}()
	return a
}

// second sends the call to another target. It returns nil if there is none.
func (h *hedging) second(ended chan<- *attempt, r *http.Request, message []byte) *attempt {
	first, ok := r.Context().Value(leaseKey{}).(*upstream.Lease)
	if !ok {
		return nil
	}
	lease, err := h.group.Pick(r.Context(), r, *first)
	if err != nil {
		return nil
	}
	// The values of the context have the trace by which the proxy learns of the first attempt.
	second := r.Clone(lease.Context(noValues{r.Context()}))
	second.URL.Host = lease.Host()
	span := h.traces.start(r.Context(), second, lease.Addr())
	start := time.Now()
	return send(ended, second, message, func(out *http.Request) (*http.Response, error) {
		resp, err := h.next.RoundTrip(out)
		if err != nil {
			if out.Context().Err() != nil { // the other one was faster, or the client has gone: not the target's fault
				err = &culvert.Error{Kind: culvert.ClientGone, Target: lease.Addr(), Err: err}
			}
			end(span, 0, err)
			lease.Done(upstream.Outcome{Err: err})
			return nil, err
		}
		outcome := upstream.Outcome{Status: resp.StatusCode, TimeToHeader: time.Since(start)}
		resp.Body = &onClose{ReadCloser: resp.Body, f: func() {
			end(span, outcome.Status, nil)
			lease.Done(outcome)
		}}
		return resp, nil
	})
}

// abandon ends the attempts that are overtaken.
func abandon(running map[*attempt]bool, ended <-chan *attempt) {
	for a := range running {
		a.cancel()
	}
	go func() {
		for range running {
			(<-ended).discard()
		}
	}()
}

func (a *attempt) discard() {
	a.cancel()
	if a.resp != nil {
		a.resp.Body.Close()
	}
}

// noValues is a context without values.
type noValues struct{ context.Context }

// Value implements context.Context.
func (noValues) Value(any) any { return nil }

// onClose calls f once when the body is closed.
type onClose struct {
	io.ReadCloser
	f    func()
	once sync.Once
}

// Close implements io.Closer.
func (b *onClose) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.f)
	return err
}
