package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// StickyOptions configures Sticky. The zero value is a session cookie "culvert"
// for the whole site over a round robin.
type StickyOptions struct {
	// Name is the cookie's name; "" means "culvert". With the prefix __Secure- or
	// __Host- (RFC 6265bis section 4.1.3) Insecure is not possible, with __Host-
	// neither Domain nor a Path other than "/".
	Name string
	// Secret is the key of the cookie's value, an HMAC-SHA256 of the target's address, so
	// that a client can neither learn the address from it nor choose a target. With an
	// empty Secret, any client that knows an address can make its value. Gateways that share
	// clients need the same Secret.
	Secret []byte
	// Path is the cookie's path, which begins with "/"; "" means "/".
	Path string
	// Domain is the cookie's domain; "" means the host of the request.
	Domain string
	// MaxAge is the cookie's lifetime, at least one second; 0 means a session cookie,
	// which browsers delete when they are closed.
	MaxAge time.Duration
	// Insecure omits the Secure attribute from cookies that are sent over TLS. Over
	// cleartext it is never set.
	Insecure bool
	// SameSite is the cookie's SameSite attribute; 0 means Lax. None is not possible
	// with Insecure: browsers drop such cookies.
	SameSite http.SameSite
	// Otherwise selects a target for a client that has no cookie, or whose target is not
	// available; nil means RoundRobin.
	Otherwise Balance
}

// Sticky sends a client's requests to the same target by a cookie, which is HttpOnly.
// Lease.Cookie returns the cookie; package proxy sends it. The zero StickyOptions is valid.
func Sticky(o StickyOptions) Balance {
	if o.Name == "" {
		o.Name = "culvert"
	}
	if o.Path == "" {
		o.Path = "/"
	}
	if o.SameSite == 0 {
		o.SameSite = http.SameSiteLaxMode
	}
	if o.Otherwise == nil {
		o.Otherwise = RoundRobin()
	}
	return sticky{o}
}

type sticky struct{ o StickyOptions }

func (s sticky) check(targets []Target) error {
	if err := (&http.Cookie{Name: s.o.Name, Value: "v", Path: s.o.Path, Domain: s.o.Domain}).Valid(); err != nil {
		return fmt.Errorf("Sticky: %w", err)
	}
	if err := s.o.checkAttributes(); err != nil {
		return fmt.Errorf("Sticky: %w", err)
	}
	if _, nested := s.o.Otherwise.(sticky); nested {
		return errors.New("Sticky stands in its own Otherwise")
	}
	return s.o.Otherwise.check(targets)
}

// checkAttributes returns an error if browsers would drop the cookie, or would not keep it as configured.
func (o StickyOptions) checkAttributes() error {
	hostOnly, secureOnly := hasPrefixFold(o.Name, "__Host-"), hasPrefixFold(o.Name, "__Secure-")
	switch {
	case o.MaxAge < 0:
		return fmt.Errorf("negative MaxAge %v", o.MaxAge)
	case o.MaxAge > 0 && o.MaxAge < time.Second:
		return fmt.Errorf("MaxAge %v is less than a second", o.MaxAge)
	case o.SameSite < http.SameSiteDefaultMode || o.SameSite > http.SameSiteNoneMode:
		return fmt.Errorf("unknown SameSite %d", o.SameSite)
	case o.SameSite == http.SameSiteNoneMode && o.Insecure:
		return errors.New("SameSite None is not possible with Insecure")
	case !strings.HasPrefix(o.Path, "/"):
		return fmt.Errorf("the Path %q does not begin with /", o.Path)
	case (hostOnly || secureOnly) && o.Insecure:
		return fmt.Errorf("option Insecure is not possible with the name %q", o.Name)
	case hostOnly && o.Domain != "":
		return fmt.Errorf("the Domain %q is not possible with the name %q", o.Domain, o.Name)
	case hostOnly && o.Path != "/":
		return fmt.Errorf("the Path %q is not possible with the name %q", o.Path, o.Name)
	}
	return nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func (s sticky) newPicker(members []*member, before picker) picker {
	if b, ok := before.(*cookiePicker); ok {
		before = b.otherwise
	}
	c := &cookiePicker{o: s.o, otherwise: s.o.Otherwise.newPicker(members, before), byValue: map[string]*member{}, values: map[*member]string{}}
	for _, m := range members {
		v := s.value(m.Addr)
		c.byValue[v], c.values[m] = m, v
	}
	return c
}

// value returns the cookie's value for a target.
func (s sticky) value(addr string) string {
	mac := hmac.New(sha256.New, s.o.Secret)
	mac.Write([]byte(addr))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

type cookiePicker struct {
	o         StickyOptions
	otherwise picker
	byValue   map[string]*member
	values    map[*member]string
}

func (c *cookiePicker) pick(q query) *member {
	if m := c.byValue[c.valueOf(q.r)]; m != nil && q.acquire(m) {
		return m
	}
	return c.otherwise.pick(q)
}

// binds implements binder.
func (c *cookiePicker) binds(r *http.Request) bool {
	if c.byValue[c.valueOf(r)] != nil {
		return true
	}
	b, ok := c.otherwise.(binder)
	return ok && b.binds(r)
}

func (c *cookiePicker) released(m *member) {
	if l, ok := c.otherwise.(releaser); ok {
		l.released(m)
	}
}

func (c *cookiePicker) targetFailed(m *member) {
	if f, ok := c.otherwise.(failureCounter); ok {
		f.targetFailed(m)
	}
}

// valueOf returns the value of the request's cookie, "" if it has none.
func (c *cookiePicker) valueOf(r *http.Request) string {
	if cookie, err := r.Cookie(c.o.Name); err == nil {
		return cookie.Value
	}
	return ""
}

// cookie implements cookieGiver. It returns nil if the request has m's cookie already.
func (c *cookiePicker) cookie(r *http.Request, m *member) *http.Cookie {
	value := c.values[m]
	if c.valueOf(r) == value {
		return nil
	}
	return &http.Cookie{
		Name:     c.o.Name,
		Value:    value,
		Path:     c.o.Path,
		Domain:   c.o.Domain,
		MaxAge:   int(c.o.MaxAge / time.Second),
		Secure:   r.TLS != nil && !c.o.Insecure,
		HttpOnly: true,
		SameSite: c.o.SameSite,
	}
}
