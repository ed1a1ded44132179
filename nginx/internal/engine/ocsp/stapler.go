package ocsp

import (
	"context"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Times of nginx: a response is requested again an hour later, but not earlier than after five minutes, nor than five minutes before
// it ends.
const (
	refreshAfter = time.Hour
	retryAfter   = 5 * time.Minute
)

// Stapler has a responder's response about a certificate at hand. It is safe for concurrent use by multiple goroutines.
type Stapler struct {
	// Cert is what the response is about, and Issuer has issued it. Both must be set.
	Cert, Issuer *x509.Certificate
	// Responder is the URL that requests are sent to.
	Responder string
	// Verify requires that the issuer has signed the response, or has delegated that.
	Verify bool
	// OnError, if not nil, is called with each failure, on a goroutine of the Stapler's.
	OnError func(error)

	mu      sync.Mutex
	raw     []byte
	until   time.Time // raw is valid; the zero Time is no bound
	next    time.Time // raw is requested again
	running bool
	closed  bool
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// Staple returns the last response, nil if there is none that is valid. It does not wait: what a handshake lacks is requested for
// the following ones.
func (s *Stapler) Staple() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.running && !s.closed && !now.Before(s.next) {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		s.running, s.stop = true, cancel
		s.ended.Go(func() { s.refresh(ctx) })
	}
	if s.raw == nil || !s.until.IsZero() && now.After(s.until) {
		return nil
	}
	return s.raw
}

// refresh requests a response.
func (s *Stapler) refresh(ctx context.Context) {
	raw, r, err := s.request(ctx)
	s.mu.Lock()
	s.stop()
	s.running = false
	now := time.Now()
	s.next = now.Add(retryAfter)
	if err == nil {
		s.raw, s.until = raw, r.NextUpdate
		if at := now.Add(refreshAfter); r.NextUpdate.IsZero() || at.Before(r.NextUpdate.Add(-retryAfter)) {
			s.next = at
		} else if at := r.NextUpdate.Add(-retryAfter); at.After(s.next) {
			s.next = at
		}
	}
	closed := s.closed
	s.mu.Unlock()
	if err != nil && !closed && s.OnError != nil {
		s.OnError(err)
	}
}

func (s *Stapler) request(ctx context.Context) ([]byte, *ocsp.Response, error) {
	raw, err := fetch(ctx, s.Responder, s.Cert, s.Issuer)
	if err != nil {
		return nil, nil, err
	}
	r, err := Check(raw, s.Cert, s.Issuer, s.Verify)
	if err == nil && r.Status != ocsp.Good {
		err = fmt.Errorf("certificate status %q in the OCSP response", statusName(r.Status))
	}
	return raw, r, err
}

func statusName(status int) string {
	if status == ocsp.Revoked {
		return "revoked"
	}
	return "unknown"
}

// Close ends a request that runs, and waits for that. Staple requests nothing any more.
func (s *Stapler) Close() {
	s.mu.Lock()
	s.closed = true
	if s.running {
		s.stop()
	}
	s.mu.Unlock()
	s.ended.Wait()
}

// Wait returns when no request runs.
func (s *Stapler) Wait() { s.ended.Wait() }
