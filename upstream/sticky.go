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
	// neither Domain nor a Path but "/".
	Name string
	// Secret signs what the cookie says (HMAC-SHA256), so that a client can
	// neither tell a target's address from it nor choose a target. Without it
	// the value is a hash of the address, which who knows the address can
	// make. Gateways that share clients need the same one.
	Secret []byte
	// Path is the cookie's path, which begins with "/"; "" means "/".
	Path string
	// Domain is the cookie's domain; "" means the host that was asked.
	Domain string
	// MaxAge is the cookie's life, one second at least; 0 means until the browser
	// ends.
	MaxAge time.Duration
	// Insecure leaves the Secure attribute away from cookies that go out over
	// TLS. Over cleartext it is never set.
	Insecure bool
	// SameSite is the cookie's SameSite attribute; 0 means Lax. None is not possible
	// with Insecure: browsers drop such cookies.
	SameSite http.SameSite
	// Otherwise picks for who has no cookie, or one of a target that can't be
	// asked; nil means RoundRobin.
	Otherwise Balance
}

// Sticky keeps a client with its target by a cookie, which is HttpOnly. The
// cookie is in Lease.Cookie; package proxy sends it.
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

// checkAttributes returns why browsers would drop the cookie, or keep it otherwise than it says.
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

func (s sticky) over(members []*member, before picker) picker {
	if b, ok := before.(*cookies); ok {
		before = b.otherwise
	}
	c := &cookies{o: s.o, otherwise: s.o.Otherwise.over(members, before), byValue: map[string]*member{}, values: map[*member]string{}}
	for _, m := range members {
		v := s.value(m.Addr)
		c.byValue[v], c.values[m] = m, v
	}
	return c
}

// value is what the cookie says for a target.
func (s sticky) value(addr string) string {
	mac := hmac.New(sha256.New, s.o.Secret)
	mac.Write([]byte(addr))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

type cookies struct {
	o         StickyOptions
	otherwise picker
	byValue   map[string]*member
	values    map[*member]string
}

func (c *cookies) pick(q query) *member {
	if m := c.byValue[c.sent(q.r)]; m != nil && q.claim(m) {
		return m
	}
	return c.otherwise.pick(q)
}

func (c *cookies) released(m *member) {
	if l, ok := c.otherwise.(releaser); ok {
		l.released(m)
	}
}

func (c *cookies) targetFailed(m *member) {
	if f, ok := c.otherwise.(failureCounter); ok {
		f.targetFailed(m)
	}
}

// sent is the value that the client has, "" for none.
func (c *cookies) sent(r *http.Request) string {
	if cookie, err := r.Cookie(c.o.Name); err == nil {
		return cookie.Value
	}
	return ""
}

// cookie returns what the client must be sent to come back to m, nil if it knows.
func (c *cookies) cookie(r *http.Request, m *member) *http.Cookie {
	value := c.values[m]
	if c.sent(r) == value {
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
