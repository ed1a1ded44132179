package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An included file in an if or a limit_except works like its text in that place.
func TestIncludeInsideIf(t *testing.T) {
	s := serve(t, with(server(`if ($arg_a) { include gone; } location /cors { if ($request_method = OPTIONS) { include cors; } return 204; }
		location /files { limit_except GET { include deny; } }`),
		"gone", "return 410;", "cors", "add_header Access-Control-Max-Age 86400;\nreturn 204;", "deny", "deny all;"))
	equal(t, "in the server", s.get("/?a=1").StatusCode, http.StatusGone)
	equal(t, "in a location", s.request("OPTIONS", "/cors").Header.Get("Access-Control-Max-Age"), "86400")
	equal(t, "in a limit_except", s.request("PUT", "/files").StatusCode, http.StatusForbidden)
	equal(t, "of another method", s.request("GET", "/files").StatusCode, http.StatusNotFound)
}

// The upstream's Server and Date are passed on if proxy_pass_header says so.
func TestProxyPassHeaderServer(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "backend")
		w.Header().Set("Date", "Sat, 21 Nov 2026 00:00:00 GMT")
	}))
	t.Cleanup(backend.Close)
	s := serve(t, server(strings.ReplaceAll(`location / { proxy_pass URL; } location /passed { proxy_pass URL; proxy_pass_header Server; proxy_pass_header Date;
		error_page 502 /x; } location /own { proxy_pass_header Server; return 204; } location /dead { proxy_pass http://127.0.0.1:1; proxy_pass_header Server; }`, "URL", backend.URL)))
	for target, want := range map[string]string{"/": "nginx/1.31.5", "/passed": "backend", "/own": "nginx/1.31.5", "/dead": "nginx/1.31.5"} {
		equal(t, target, s.get(target).Header.Get("Server"), want)
	}
	equal(t, "Date", s.get("/passed").Header.Get("Date"), "Sat, 21 Nov 2026 00:00:00 GMT")
}

// A 426 of culvert's own names the required upgrade, on an error page too (RFC 9110 section
// 15.5.22, RFC 6455 section 4.4).
func TestOwnUpgradeRequired(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
		location / { proxy_pass http://UP; } location /page/ { proxy_pass http://UP; error_page 426 /old; } location = /old { return 200 "too old"; }`, "UP", tomcat(t, nil))))
	for _, target := range []string{"/serviceName/ws", "/page/ws"} {
		a := s.send("GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		equal(t, target, a.StatusCode, http.StatusUpgradeRequired)
		equal(t, target+": Upgrade", a.Header.Get("Upgrade"), "websocket")
		equal(t, target+": Connection", a.Header.Get("Connection"), "Upgrade")
		equal(t, target+": Sec-WebSocket-Version", a.Header.Get("Sec-WebSocket-Version"), "13")
	}
}
