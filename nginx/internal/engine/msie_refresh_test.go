package engine_test

import (
	"strings"
	"testing"
)

// Internet Explorer is redirected by a page where msie_refresh says so.
func TestMSIERefresh(t *testing.T) {
	s := serve(t, server(`msie_refresh on; location / { return 301 "/a b"; } location /307 { return 307 /a; }
		location /error { error_page 404 http://a.test/; return 404; }
		location /host { error_page 301 http://a.test; return 301 /a; } location /path { error_page 301 http://a.test/b; return 301 /a; } location /off { msie_refresh off; return 301 /a; }`))
	for target, to := range map[string]string{"/": "/a%20b", "/307": "", "/error": "http://a.test/", "/host": "http://a.test", "/path": "http://a.test/b", "/off": ""} {
		got := s.get(target, "User-Agent: Mozilla/4.0 (compatible; MSIE 6.0)")
		page := strings.Contains(got.body, `content="0; URL=`+to+`"`)
		if (to != "") != (got.StatusCode == 200 && page && got.Header.Get("Location") == "") {
			t.Errorf("%s: %s %v %q", target, got.Status, got.Header, got.body)
		}
	}
	if got := s.get("/", "User-Agent: curl"); got.StatusCode != 301 {
		t.Errorf("curl: %s", got.Status)
	}
}
