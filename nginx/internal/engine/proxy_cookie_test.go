package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// proxy_cookie_flags evaluates variables of its name and flags for each cookie: empty flags are
// skipped, invalid ones logged, and constant ones refused when the configuration is read.
func TestProxyCookieFlagVariables(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Set-Cookie"] = strings.Split(r.Header.Get("X-Cookies"), "|")
	}))
	t.Cleanup(up.Close)
	s := serve(t, server(strings.ReplaceAll(`error_log error.log debug;
		location /var { proxy_pass UP proxy_cookie_flags $arg_v $arg_a $arg_b SameSite=$arg_c; proxy_cookie_flags z secure; }
		location /re { proxy_pass UP proxy_cookie_flags ~^for-(.+)$ $1; proxy_cookie_flags ~^for- httponly; }`,
		"UP", up.URL+";")))
	for _, c := range []struct{ target, cookies, want string }{
		{"/var?v=n&a=secure&b=HttpOnly&c=none", "n=1; Path=/", "n=1; Path=/; Secure; HttpOnly; SameSite=None"},
		{"/var?v=n&a=&b=httponly&c=lax", "n=1;samesite=none", "n=1; SameSite=Lax; HttpOnly"},
		{"/var?v=n&a=secure&b=&c=lax", "n =  1;Secure ;HttpOnly;x = y ", "n=1; Secure; HttpOnly; x=y; SameSite=Lax"},
		{"/var?v=other", "n=1;Secure ;x = y", "n=1;Secure ;x = y"},
		{"/var?v=n&a=nosecure&b=nohttponly&c=x", "n=1; secure; HttpOnly", "n=1"},
		{"/var?v=N&a=bad%22&b=secure&c=strict", "n=1|other=1|z=1", "n=1; Secure; SameSite=Strict|other=1|z=1; Secure"},
		{"/re", "for-secure=1|for-httponly=1|for-x=1; Secure", "for-secure=1; Secure|for-httponly=1; HttpOnly|for-x=1; Secure"},
	} {
		got := s.get(c.target, "X-Cookies: "+c.cookies).Header["Set-Cookie"]
		equal(t, c.target, strings.Join(got, "|"), c.want)
	}
	for _, want := range []string{`[debug]`, `invalid proxy_cookie_flags flag "x"`, `flag "SameSite=x"`} {
		if log := s.file("error.log"); !strings.Contains(log, want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	if _, err := load(t, server(`location / { proxy_pass `+up.URL+`; proxy_cookie_flags $arg_v $arg_f foo; }`)); err == nil ||
		!strings.Contains(err.Error(), `invalid parameter "foo"`) {
		t.Errorf("a constant flag that is none: %v", err)
	}
}

// A rule of proxy_cookie_domain replaces a domain without its leading dot, by one without, and writes the cookie anew.
func TestProxyCookieDomainDots(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Set-Cookie"] = strings.Split(r.Header.Get("X-Cookies"), "|")
	}))
	t.Cleanup(up.Close)
	s := serve(t, server(`location / { proxy_pass `+up.URL+`; proxy_cookie_domain .a.internal .example.com; proxy_cookie_path /old/ /; }`))
	got := s.get("/", "X-Cookies: n=1;Domain=a.Internal;Path=/old/x|n=2; Domain=.a.internal|n=3;Domain=b.internal;Path=/new").Header["Set-Cookie"]
	equal(t, "cookies", strings.Join(got, "|"), "n=1; Domain=example.com; Path=/x|n=2; Domain=.example.com|n=3;Domain=b.internal;Path=/new")
}
