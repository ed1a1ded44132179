package engine_test

import (
	"strings"
	"testing"
)

func TestMemcached(t *testing.T) {
	up := program(t, "\r\n", func(got string) string {
		if key := strings.TrimSuffix(strings.TrimPrefix(got, "get "), "\r\n"); key != "/missing" {
			return "VALUE " + key + " 0 5\r\nhello\r\nEND\r\n"
		}
		return "END\r\n"
	})
	s := serve(t, map[string]string{"nginx.conf": `events {} http { default_type text/x; server { set $memcached_key $uri$arg_k;
		location / { memcached_pass ` + up + `; error_page 404 = @other; } location @other { return 200 other; } } }`})
	for path, want := range map[string]string{"/key": "hello", "/a%20b?k=%0A": "hello", "/missing": "other"} {
		if got := s.get(path); got.StatusCode != 200 || got.body != want || got.Header.Get("Content-Type") != "text/x" && want == "hello" {
			t.Errorf("%s: %d %q %v", path, got.StatusCode, got.body, got.Header)
		}
	}
}
