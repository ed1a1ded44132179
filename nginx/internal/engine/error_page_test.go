package engine_test

import (
	"net/http"
	"testing"
)

func TestErrorPage(t *testing.T) {
	s := serve(t, with(server(`
		root html;
		location /keep { error_page 404 /page.html; return 404; }
		location /own { error_page 404 = /page.html; return 404; }
		location /set { error_page 404 410 =203 /page.html; return 410; }
		location /named { error_page 404 = @named; return 404; }
		location /named-keep { error_page 404 @named; return 404; }
		location /url { error_page 404 http://other.test/$arg_x; return 404; }
		location /url301 { error_page 404 =301 http://other.test/; return 404; }
		location /missing { error_page 404 /nowhere; return 404; }
		location /text { error_page 404 /page.html; return 404 "text"; }
		location /file { error_page 404 /page.html; }
		location /dead { error_page 502 /page.html; proxy_pass http://127.0.0.1:1; }
		location /loop { recursive_error_pages on; error_page 404 /loop; return 404; }
		location /query { error_page 404 =200 /show?q=$arg_x; return 404; }
		location /show { return 200 "$uri $args $request_uri $request_method"; }
		location @named { return 200 "named $uri"; }`), "html/page.html", "page"))
	tests := []struct {
		path, body, location string
		status               int
	}{
		{"/keep", "page", "", 404},
		{"/own", "page", "", 200},
		{"/set", "page", "", 203},
		{"/named", "named /named", "", 200},
		{"/named-keep", "named /named-keep", "", 404},
		{"/url?x=7", "", "http://other.test/7", 302},
		{"/url301", "", "http://other.test/", 301},
		{"/missing", builtin("404 Not Found"), "", 404},
		{"/text", "text", "", 404},
		{"/file", "page", "", 404},
		{"/dead", "page", "", 502},
		{"/loop", builtin("500 Internal Server Error"), "", 500},
		{"/query?x=1", "/show q=1 /query?x=1 GET", "", 200},
	}
	for _, tt := range tests {
		got := s.get(tt.path)
		equal(t, tt.path+" status", got.StatusCode, tt.status)
		equal(t, tt.path+" Location", got.Header.Get("Location"), tt.location)
		if tt.body != "" {
			equal(t, tt.path+" body", got.body, tt.body)
		}
	}
	equal(t, "a POST becomes a GET", s.request("POST", "/query?x=1", "Content-Length: 0").body, "/show q=1 /query?x=1 GET")
	head := s.request("HEAD", "/keep")
	equal(t, "HEAD", head.StatusCode, 404)
	equal(t, "HEAD Content-Length", head.Header.Get("Content-Length"), "4")
	// an error page is sent in full, regardless of the request's conditions and ranges
	page := s.get("/page.html")
	part := s.get("/keep", "Range: bytes=0-0", "If-None-Match: "+page.Header.Get("Etag"))
	equal(t, "conditions and ranges", part.StatusCode, 404)
	equal(t, "conditions and ranges", part.body, "page")
}

func builtin(title string) string {
	return "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title +
		"</h1></center>\r\n<hr><center>nginx/1.31.5</center>\r\n</body>\r\n</html>\r\n"
}

func TestReturn(t *testing.T) {
	s := serve(t, server(`
		default_type text/plain;
		location /text { return 200 "a\tb $uri"; }
		location /code { return 410; }
		location /none { return 204; }
		location /moved { return 301 /to?$args; }
		location /rel { absolute_redirect off; return 302 /to; }
		location /noport { port_in_redirect off; return 307 /to; }
		location /url { return https://x.test$request_uri; }
		location /scheme { return $scheme://x.test/; }
		location /first { return 200 first; return 200 second; }
		location /odd { return 418; }`))
	at := "http://localhost:" + port(s.first)
	for path, want := range map[string]string{
		"/moved?a=b": "301 " + at + "/to?a=b", "/rel": "302 /to", "/noport": "307 http://localhost/to",
		"/url?x": "302 https://x.test/url?x", "/scheme": "302 http://x.test/",
	} {
		got := s.get(path)
		equal(t, path, http.StatusText(got.StatusCode)+" "+got.Header.Get("Location"), statusText(want))
	}
	text := s.get("/text")
	equal(t, "text", text.body, "a\tb /text")
	equal(t, "Content-Type", text.Header.Get("Content-Type"), "text/plain")
	equal(t, "Server", text.Header.Get("Server"), "nginx/1.31.5")
	equal(t, "first", s.get("/first").body, "first")
	code := s.get("/code")
	equal(t, "page", code.body, builtin("410 Gone"))
	equal(t, "page's type", code.Header.Get("Content-Type"), "text/html")
	none := s.get("/none")
	equal(t, "204", none.StatusCode, 204)
	equal(t, "204 type", none.Header.Get("Content-Type"), "")
	equal(t, "a status without a page", s.get("/odd").body, "")
}

// statusText turns "301 x" into "Moved Permanently x".
func statusText(s string) string {
	code := int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
	return http.StatusText(code) + s[3:]
}

// return 444 closes the connection without a response.
func TestReturn444(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": "events {} http { log_format s $status; access_log s.log s; server { return 444; } }"})
	if _, err := http.Get("http://" + s.first); err == nil {
		t.Error("there was a response")
	}
	equal(t, "logged", eventually(t, func() string { return s.file("s.log") }), "444\n")
}
