package engine_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// Cookies of userid: the flags in nginx's order, the mark, and the number of the service in front of random bytes.
func TestUserID(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { map $arg_r $uid_reset { default $arg_r; }
		server { userid on; error_log error.log notice; add_header X-Got $uid_got; add_header X-Set $uid_set; location / { return 200; }
			location /flags { userid_flags samesite=lax httponly secure; return 200; }
			location /marked { userid_mark t; return 200; }
			location /service { userid_service 65534; return 200; }
			location /v1 { userid v1; return 200; }
			location /v1/service { userid v1; userid_service 65534; return 200; }
			location /log { userid log; return 200; } } }`})
	cookie := func(target string, fields ...string) string { return s.get(target, fields...).Header.Get("Set-Cookie") }
	if got := cookie("/flags"); !strings.HasSuffix(got, "; path=/; secure; httponly; samesite=lax") {
		t.Errorf("flags: %q", got)
	}
	if got := cookie("/marked"); !regexp.MustCompile(`^uid=[^=]{22}t=; `).MatchString(got) {
		t.Errorf("marked: %q", got)
	}
	for target, want := range map[string]string{"/": "\x7f\x00\x00\x01", "/service": "\x00\x00\xff\xfe", "/v1": "\x00\x00\x00\x00", "/v1/service": "\xfe\xff\x00\x00"} {
		value, _, _ := strings.Cut(strings.TrimPrefix(cookie(target), "uid="), ";")
		if id, err := base64.StdEncoding.DecodeString(value); err != nil || len(id) != 16 || string(id[:4]) != want {
			t.Errorf("%s: %q, %v", target, id, err)
		}
	}
	const has = "Cookie: uid=AAAAAAAAAAAAAAAAAAAAAQ=="
	equal(t, "kept", cookie("/", has), "")
	equal(t, "to be marked", cookie("/marked", has), "uid=AAAAAAAAAAAAAAAAAAAAAQt=; path=/")
	equal(t, "marked already", cookie("/marked", "Cookie: uid=AAAAAAAAAAAAAAAAAAAAAQt="), "")
	got := s.get("/?r=1", has)
	equal(t, "got", got.Header.Get("X-Got"), "uid=00000000000000000000000001000000")
	if set := got.Header.Get("X-Set"); set == "" || set == got.Header.Get("X-Got") || got.Header.Get("Set-Cookie") == "" {
		t.Errorf("reset: %q, %q", set, got.Header["Set-Cookie"])
	}
	equal(t, "log", cookie("/log?r=1", has), "")
	equal(t, "error log", s.file("error.log"), "")
	s.get("/?r=log", has)
	if got := s.file("error.log"); !strings.Contains(got, `[notice]`) || !strings.Contains(got, `userid cookie "uid=00000000000000000000000001000000" was reset`) {
		t.Errorf("error log: %q", got)
	}
}

// A Referer's host ends at a slash or a colon, and one without a scheme, or too short for a host, is blocked.
func TestReferers(t *testing.T) {
	s := serve(t, server(`
		location /none { valid_referers none a.test; return 200 "$invalid_referer"; }
		location /blocked { valid_referers blocked a.test; return 200 "$invalid_referer"; }
		location /names { valid_referers a.test/b ex.*; return 200 "$invalid_referer"; }
		location /any { valid_referers ~.*; return 200 "$invalid_referer"; }`))
	long := strings.Repeat("a", 256)
	for _, tt := range []struct{ target, field, want string }{
		{"/none", "", ""}, {"/none", "Referer:", "1"}, {"/none", "Referer: http://a.test", ""},
		{"/blocked", "", "1"}, {"/blocked", "Referer:", ""}, {"/blocked", "Referer: http://su", ""}, {"/blocked", "Referer: ***", ""}, {"/blocked", "Referer: http://b.test", "1"},
		{"/names", "Referer: HTTPS://A.test/b?c", ""}, {"/names", "Referer: http://a.test:80/bc", ""}, {"/names", "Referer: http://a.test/c", "1"}, {"/names", "Referer: http://a.test?/b", "1"},
		{"/names", "Referer: http://ex.a", ""}, {"/names", "Referer: http://ex." + long, "1"},
		{"/any", "Referer: http://" + long, ""}, {"/any", "Referer: http://a" + long, "1"}, {"/any", "Referer: none", "1"},
	} {
		var fields []string
		if tt.field != "" {
			fields = []string{tt.field}
		}
		equal(t, tt.target+" "+tt.field, s.get(tt.target, fields...).body, tt.want)
	}
}
