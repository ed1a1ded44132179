package upstream_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

func withCookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

func TestSticky(t *testing.T) {
	p := newPicks(t, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Secret: []byte("s")})}, addrs("a b c")...)
	l := p.lease()
	cookie := l.Cookie(request())
	if cookie == nil {
		t.Fatal("a new client got no cookie")
	}
	if got := cookie.String(); !strings.HasPrefix(got, "culvert=") || !strings.HasSuffix(got, "; Path=/; HttpOnly; SameSite=Lax") || strings.Contains(got, "a:1") {
		t.Errorf("cookie %q", got)
	}
	l.Done(upstream.Outcome{Status: 200})
	p.want("a a a a", withCookie(cookie))
	if again := l.Cookie(request(withCookie(cookie))); again != nil {
		t.Errorf("a client that has its target's cookie got %v", again)
	}
	p.want("b c a", withCookie(&http.Cookie{Name: "culvert", Value: "nonsense"}))

	p.broken["a"] = true
	p.want("a b", withCookie(cookie))
	other := p.lease()
	if moved := other.Cookie(request(withCookie(cookie))); moved == nil || moved.Value == cookie.Value {
		t.Errorf("a client whose target has failed got %v", moved)
	}
}

// The cookie's value depends on the secret alone: gateways that share it make the same value.
func TestStickySecret(t *testing.T) {
	value := func(secret string) string {
		p := newPicks(t, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Secret: []byte(secret)})}, addrs("a b")...)
		return p.lease().Cookie(request()).Value
	}
	one, again := value("one"), value("one")
	if one != again {
		t.Error("two gateways with the same secret disagree")
	}
	if one == value("two") || one == value("") {
		t.Error("the secret makes no difference")
	}
}

func TestStickyAttributes(t *testing.T) {
	overTLS := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }
	o := upstream.StickyOptions{Name: "route", Path: "/app", Domain: "example.com", MaxAge: time.Hour, SameSite: http.SameSiteNoneMode, Otherwise: upstream.First()}
	p := newPicks(t, upstream.Options{Balance: upstream.Sticky(o)}, addrs("a b")...)
	got := p.lease().Cookie(request(overTLS)).String()
	_, attributes, _ := strings.Cut(got, "; ")
	if !strings.HasPrefix(got, "route=") || attributes != "Path=/app; Domain=example.com; Max-Age=3600; HttpOnly; Secure; SameSite=None" {
		t.Errorf("cookie %q", got)
	}
	o.Insecure, o.SameSite = true, http.SameSiteLaxMode // browsers drop None without Secure
	p = newPicks(t, upstream.Options{Balance: upstream.Sticky(o)}, addrs("a b")...)
	if c := p.lease().Cookie(request(overTLS)); c.Secure {
		t.Error("Insecure makes no difference")
	}
	p.want("a a") // Otherwise
}
