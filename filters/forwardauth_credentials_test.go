package filters_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A service that judges by the first Authorization, and a target that believes the last one, must not get both.
func TestForwardAuthOfTwoCredentials(t *testing.T) {
	for _, test := range []struct {
		fields []string // nil: the default
		status int
	}{{nil, 400}, {[]string{"Cookie"}, 200}} {
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204), RequestFields: test.fields, CacheTime: time.Minute}))
		for range 2 {
			if resp, _ := through(f, respond("ok"), get("Authorization", "Bearer mine", "Authorization", "Bearer forged")); resp.StatusCode != test.status {
				t.Errorf("%v: status %d", test.fields, resp.StatusCode)
			}
		}
	}
}

// A client can't remove a field of the response by naming it in Connection, also without a Chain, whose handler would have
// removed that.
func TestForwardAuthWithoutChain(t *testing.T) {
	leaktest.Check(t)
	received := make(chan http.Header, 1)
	target := wiretest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Clone() }))
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204, "X-User", "alice"), ResponseFields: []string{"X-User"}}))
	client := wiretest.Dial(t, wiretest.Serve(t, f(forwardTo(t, target))))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-User\r\nX-User: admin\r\n\r\n")
	client.Status(200)
	if got := wiretest.Await(t, received, "request"); len(got["X-User"]) != 1 || got.Get("X-User") != "alice" {
		t.Errorf("the target received %v", got)
	}
}

// A client with another certificate, or another server's name, is another client, as long as responses are kept.
func TestForwardAuthCacheOfCertificates(t *testing.T) {
	asked := 0
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{CacheTime: time.Minute, To: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(204)
	})}))
	of := func(raw, name string) *tls.ConnectionState {
		return &tls.ConnectionState{ServerName: name, PeerCertificates: []*x509.Certificate{{Raw: []byte(raw)}}}
	}
	for i, state := range []*tls.ConnectionState{nil, {ServerName: "a"}, of("1", "a"), of("2", "a"), of("2", "b")} {
		for range 2 {
			r := get()
			r.TLS = state
			through(f, respond("ok"), r)
			if asked != i+1 {
				t.Errorf("connection %d: the handler was called %d times", i, asked)
			}
		}
	}
}

// What the handler sets behind its header is not of the response, and its trailers are none of the refusal's. Its Vary is
// one more.
func TestForwardAuthHeaderOfResponse(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{ResponseFields: []string{"X-User"}, To: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
			w.Header().Set("Vary", "Cookie")
			if allowed {
				w.WriteHeader(204)
			} else {
				w.WriteHeader(401)
			}
			w.Header().Set("X-User", "late")
			w.Header().Set("X-Late", "late")
		})}))
		w := httptest.NewRecorder()
		w.Header().Set("Vary", "Origin")
		f(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header["X-User"] != nil {
				t.Errorf("X-User is %q", r.Header["X-User"])
			}
		})).ServeHTTP(w, get())
		vary := strings.Join(w.Header()["Vary"], ", ")
		if want := map[bool]string{true: "Origin", false: "Origin, Cookie"}[allowed]; vary != want {
			t.Errorf("%v: Vary %s", allowed, vary)
		}
		if w.Header()["X-Late"] != nil || w.Header()[http.TrailerPrefix+"X-Sum"] != nil {
			t.Errorf("%v: %v", allowed, w.Header())
		}
	}
}
