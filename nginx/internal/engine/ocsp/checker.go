package ocsp

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// What is wrong with a client's certificate, in nginx's words.
var (
	ErrRevoked = errors.New("certificate revoked")
	ErrFailed  = errors.New("certificate status request failed")
)

// Checker requests from responders whether certificates of clients are revoked.
type Checker struct {
	// Responder is the URL of the responder; "" is that of each certificate.
	Responder string
	// Leaf checks only the client's own certificate, not those between it and the root.
	Leaf bool
	// Cache keeps responses; nil: each connection has its own.
	Cache *Cache
}

// Check checks a chain that ends with a root, one certificate after the other. The error is ErrRevoked or ErrFailed; logError is called
// with the details of the latter. A responder has a minute: ctx is that of one of perhaps several requests that wait for the result,
// and its end is no reason to fail.
func (c *Checker) Check(ctx context.Context, chain []*x509.Certificate, logError func(string)) error {
	for i := range len(chain) - 1 {
		if err := c.checkOne(context.WithoutCancel(ctx), chain[i], chain[i+1], logError); err != nil {
			return err
		}
		if c.Leaf {
			break
		}
	}
	return nil
}

func (c *Checker) checkOne(ctx context.Context, cert, issuer *x509.Certificate, logError func(string)) error {
	status, known := c.Cache.find(cert)
	if !known {
		r, err := c.request(ctx, cert, issuer)
		if err != nil {
			logError(err.Error() + " while requesting certificate status")
			return ErrFailed
		}
		status = r.Status
		c.Cache.add(cert, r)
	}
	switch status {
	case ocsp.Good:
		return nil
	case ocsp.Revoked:
		return ErrRevoked
	}
	return ErrFailed
}

func (c *Checker) request(ctx context.Context, cert, issuer *x509.Certificate) (*ocsp.Response, error) {
	responder := c.Responder
	if responder == "" && len(cert.OCSPServer) > 0 {
		responder = cert.OCSPServer[0]
	}
	if !strings.HasPrefix(responder, "http://") {
		return nil, errors.New("no OCSP responder URL")
	}
	raw, err := fetch(ctx, responder, cert, issuer)
	if err != nil {
		return nil, err
	}
	return Check(raw, cert, issuer, true)
}

// Cache keeps the responses about certificates until they end. It is safe for concurrent use by multiple goroutines.
type Cache struct {
	max int

	mu   sync.Mutex
	list map[[sha256.Size]byte]cached
}

type cached struct {
	status int
	until  time.Time
}

// NewCache returns a Cache for that many certificates. Of more, any ones are forgotten.
func NewCache(certificates int) *Cache {
	return &Cache{max: max(certificates, 1), list: map[[sha256.Size]byte]cached{}}
}

func (c *Cache) find(cert *x509.Certificate) (status int, ok bool) {
	if c == nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.list[sha256.Sum256(cert.Raw)]
	return entry.status, ok && time.Now().Before(entry.until)
}

// add keeps a response that says when it ends.
func (c *Cache) add(cert *x509.Certificate, r *ocsp.Response) {
	if c == nil || r.NextUpdate.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.list {
		if len(c.list) < c.max {
			break
		}
		delete(c.list, key)
	}
	c.list[sha256.Sum256(cert.Raw)] = cached{r.Status, r.NextUpdate}
}
