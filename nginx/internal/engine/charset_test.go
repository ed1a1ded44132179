package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const charsetMaps = `charset_map B A { 58 59; } charset_map latin utf-8 { E4 C3A4; 80 E282AC; }`

func TestCharset(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.FormValue("type"))
		w.Header().Set("X-Accel-Charset", r.FormValue("accel"))
		w.Header().Set("Content-Encoding", r.FormValue("encoding"))
		_, _ = w.Write([]byte(r.FormValue("text")))
	}))
	defer up.Close()
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { ` + charsetMaps + ` server { root html; types { text/html html; text/foo foo; }
		location / { charset utf-8; }
		location /recoded/ { charset A; source_charset B; alias html/; max_ranges 1; }
		location /whole/ { max_ranges 0; alias html/; }
		location /utf/ { charset utf-8; source_charset latin; alias html/; }
		location /latin/ { charset latin; source_charset utf-8; charset_types *; alias html/; }
		location /var/ { charset $arg_to; source_charset $arg_from; alias html/; }
		location /moved { charset A; source_charset B; error_page 404 =301 /recoded/x.html; return 404; }
		location /up { charset A; proxy_pass ` + up.URL + `; }
		location /override { charset A; override_charset on; proxy_pass ` + up.URL + `; }
		location /ignored { charset A; proxy_ignore_headers X-Accel-Charset; proxy_pass ` + up.URL + `; }
	} }`}, "html/x.html", "aXY", "html/x.foo", "X\xc3\xa4\xe2\x82\xac", "html/latin.html", "\xe4\x80"))
	for _, tt := range []struct{ target, contentType, body string }{
		{"/x.html", "text/html; charset=utf-8", "aXY"},
		{"/x.foo", "text/foo", "X\xc3\xa4\xe2\x82\xac"},
		{"/recoded/x.html", "text/html; charset=A", "aYY"},
		{"/recoded/x.foo", "text/foo", "X\xc3\xa4\xe2\x82\xac"},
		{"/utf/latin.html", "text/html; charset=utf-8", "ä€"},
		{"/latin/x.foo", "text/foo; charset=latin", "X\xe4\x80"},
		{"/var/x.html?from=b&to=a", "text/html; charset=a", "aYY"},
		{"/var/x.html?from=c&to=C", "text/html; charset=C", "aXY"},
		{"/var/x.html?from=c&to=a", "text/html", "aXY"},
		{"/var/x.html?to=a", "text/html; charset=a", "aXY"},
		{"/moved", "text/html", "aYY"},
		{"/up?type=text/html&text=X", "text/html; charset=A", "X"},
		{"/up?type=text/html%3bcharset=B&text=X", "text/html;charset=B", "X"},
		{"/up?type=text/html%3bcharset=B&text=X&accel=a", "text/html; charset=a", "Y"},
		{"/up?type=text/html%3bcharset=B&text=X&accel=none", "text/html;charset=B", "X"},
		{"/ignored?type=text/html%3bcharset=B&text=X&accel=A", "text/html;charset=B", "X"},
		{"/override?type=text/html%3b+Charset=%22b%22%3b+x=y&text=X", "text/html; charset=A", "Y"},
		{"/override?type=text/foo%3bcharset=B&text=X", "text/foo; charset=A", "Y"},
		{"/override?type=text/html%3bcharset=B&text=X&encoding=br", "text/html;charset=B", "X"},
	} {
		got := s.get(tt.target)
		equal(t, tt.target, got.Header.Get("Content-Type")+" "+got.body, tt.contentType+" "+tt.body)
	}
	for target, want := range map[string]string{"/recoded/x.html": "YY", "/utf/latin.html": "ä€", "/whole/x.html": "aXY"} {
		equal(t, "range of "+target, s.get(target, "Range: bytes=1-2").body, want)
	}
	equal(t, "two ranges", s.get("/recoded/x.html", "Range: bytes=0-0,2-2").StatusCode, 200)
	head := s.request("HEAD", "/utf/latin.html")
	equal(t, "HEAD", head.Header.Get("Content-Type")+head.Header.Get("Content-Length"), "text/html; charset=utf-8")
	for _, want := range []string{`no "charset_map" between the charsets "c" and "a"`, `unknown charset "none" to override`} {
		if !strings.Contains(s.errors.String(), want) {
			t.Errorf("the error log lacks %s:\n%s", want, s.errors)
		}
	}
}

func TestCharsetErrors(t *testing.T) {
	for text, want := range map[string]string{
		"charset_map a A { }":                                         `"charset_map" between the same charsets "a" and "A" in `,
		"charset_map UTF-8 a { }":                                     `"charset_map" with "utf-8" charset should be given in the second column in `,
		"charset_map a b { } charset_map b a { }":                     `duplicate "charset_map" between "b" and "a" in `,
		"charset_map a b { 1; }":                                      `invalid number of parameters in `,
		"charset_map a b { 100 1; }":                                  `invalid value "100" in `,
		"charset_map a b { 1 100; }":                                  `invalid value "100" in `,
		"charset_map a utf-8 { 1 E2; }":                               `invalid value "E2" in `,
		"charset_map a b { } server { charset a; source_charset c; }": `no "charset_map" between the charsets "c" and "a" in `,
	} {
		if _, err := load(t, map[string]string{"nginx.conf": "events {} http { " + text + " }"}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
