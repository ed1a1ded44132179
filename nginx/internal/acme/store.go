package acme

import (
	"context"
	"crypto"
	"crypto/tls"
	"strings"
	"sync"

	"golang.org/x/crypto/acme"
)

// Store is what outlives configurations. It is safe for concurrent use by multiple goroutines. The zero value is empty.
type Store struct {
	mu       sync.RWMutex
	certs    map[string]*Certificate  // by order
	accounts map[string]crypto.Signer // keys that were made, by issuer
	busy     map[string]chan struct{} // full while an issuer's orders are worked on
	tokens   map[string]string        // responses to challenges of HTTP, by their paths
	alpn     map[string]*tls.Certificate
}

// Certificate returns an order's certificate, nil if there is none yet.
func (s *Store) Certificate(o *Order) *Certificate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.certs[o.id()]
}

func (s *Store) setCertificate(o *Order, c *Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(&s.certs, o.id(), c)
}

// ChallengePath begins the paths of challenges of HTTP.
const ChallengePath = "/.well-known/acme-challenge/"

// Response returns the content of the response to a challenge of HTTP, by its path; "" if it is none of ours.
func (s *Store) Response(path string) string {
	if !strings.HasPrefix(path, ChallengePath) {
		return ""
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tokens[path]
}

// ALPN returns the certificate for the handshake of a challenge by TLS (RFC 8737), nil if hello is of none or the name is not
// being verified.
func (s *Store) ALPN(hello *tls.ClientHelloInfo) *tls.Certificate {
	if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != acme.ALPNProto {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.alpn[strings.ToLower(hello.ServerName)]
}

// respond sets the response to a challenge of HTTP. The function that it returns forgets it.
func (s *Store) respond(path, content string) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(&s.tokens, path, content)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tokens, path)
	}
}

// present is respond for a challenge by TLS.
func (s *Store) present(name string, c *tls.Certificate) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(&s.alpn, name, c)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.alpn, name)
	}
}

// accountKey returns the key of an issuer's account that was made, nil if there is none.
func (s *Store) accountKey(i *Issuer) crypto.Signer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.accounts[i.id()]
}

func (s *Store) setAccountKey(i *Issuer, key crypto.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	put(&s.accounts, i.id(), key)
}

// lock waits until no other configuration works on the orders of an issuer. It reports false if ctx has ended before.
func (s *Store) lock(ctx context.Context, i *Issuer) (unlock func(), ok bool) {
	s.mu.Lock()
	busy := s.busy[i.id()]
	if busy == nil {
		busy = make(chan struct{}, 1)
		put(&s.busy, i.id(), busy)
	}
	s.mu.Unlock()
	select {
	case busy <- struct{}{}:
		return func() { <-busy }, true
	case <-ctx.Done():
		return nil, false
	}
}

// put sets an entry of a map that may be nil.
func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}
