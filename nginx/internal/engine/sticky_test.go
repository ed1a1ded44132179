package engine_test

import (
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// named serves its name, and a session of it.
func named(t *testing.T, name string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			w.Header().Set("Set-Cookie", "session="+name+"1; Path=/")
		}
		io.WriteString(w, name)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestSticky(t *testing.T) {
	a, b := named(t, "a"), named(t, "b")
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("AAA", a, "BBB", b).Replace(`events {} http {
		upstream cookie { server AAA; server BBB; sticky cookie at path=/p domain=$arg_d expires=1h secure httponly samesite=lax; }
		upstream route { server AAA route=first; server BBB route=second; sticky route $arg_none $arg_r; }
		upstream learn { server AAA; server BBB; sticky learn create=$upstream_cookie_session lookup=$cookie_session zone=z:1m; }
		upstream drained { server AAA; server BBB drain route=second; sticky route $arg_r; }
		server { location / { proxy_pass http://cookie; } location /route { proxy_pass http://route; } location /drained { proxy_pass http://drained; }
			location /learn/ { proxy_pass http://learn/; } } }`)})
	sum := md5.Sum([]byte(b))
	ofB := hex.EncodeToString(sum[:])
	for range 3 {
		got := s.get("/?d=example.com", "Cookie: at="+ofB)
		cookie := got.Header.Get("Set-Cookie")
		if got.body != "b" || !strings.HasPrefix(cookie, "at="+ofB+"; expires=") || !strings.HasSuffix(cookie, "; max-age=3600; domain=example.com; httponly; secure; samesite=lax; path=/p") {
			t.Errorf("%q with the cookie %q", got.body, cookie)
		}
		if got := s.get("/route?r=second").body + s.get("/route?r=first").body; got != "ba" {
			t.Errorf("by routes: %q", got)
		}
		if got := s.get("/drained").body + s.get("/drained?r=second").body; got != "ab" {
			t.Errorf("beside a draining server: %q", got)
		}
	}
	if got := s.get("/?x", "Cookie: at=nonsense"); got.body != "a" && got.body != "b" {
		t.Errorf("with a false cookie: %q", got.body)
	}
	login := s.get("/learn/login")
	session := strings.Split(login.Header.Get("Set-Cookie"), ";")[0]
	for range 4 {
		if got := s.get("/learn/", "Cookie: "+session); got.body != login.body {
			t.Errorf("the session of %q is at %q", login.body, got.body)
		}
	}
}

func TestStickyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"sticky cookie a path=/ path=/":                                        `parameter "path" is duplicate`,
		"sticky cookie a domain=":                                              `no value for "domain"`,
		"sticky cookie a samesite=x":                                           `invalid "samesite" parameter value`,
		"sticky cookie a expires=x":                                            `invalid "expires" parameter value`,
		"sticky cookie a nonsense":                                             `unknown parameter "nonsense"`,
		"sticky route a":                                                       `invalid variable name "a"`,
		"sticky learn create=$arg_a zone=z:1m":                                 `"lookup" parameter is not specified`,
		"sticky learn lookup=a zone=z:1m":                                      `missing variable in the "lookup" parameter`,
		"sticky learn lookup=$arg_a create=$arg_a zone=z:1k":                   `zone is too small`,
		"sticky learn lookup=$arg_a create=$arg_a zone=z:1m timeout=0":         `invalid timeout`,
		"sticky other a":                                                       `unknown parameter "other"`,
		"sticky cookie a; server 127.0.0.1:2 route=" + strings.Repeat("x", 33): `route is longer than 32`,
	} {
		_, err := load(t, map[string]string{"nginx.conf": "events {} http { upstream u { server 127.0.0.1:1; " + text + "; } }"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
