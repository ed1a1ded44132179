package engine_test

import (
	"strings"
	"testing"
)

// keepalive_disable closes the connections of old browsers, as nginx does: those of Explorers only behind a POST.
func TestKeepaliveDisable(t *testing.T) {
	s := serve(t, server(`location / { return 200; } location /none { keepalive_disable none; return 200; }
		location /safari { keepalive_disable safari; return 200; } location /both { keepalive_disable safari msie6; return 200; }`))
	const explorer, safari = "Mozilla/4.0 (compatible; MSIE 5.0; Windows 98)", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_6_8) Safari/534.57.2"
	for _, tt := range []struct {
		method, target, agent string
		closed                bool
	}{
		{"POST", "/", explorer, true},
		{"GET", "/", explorer, false},
		{"POST", "/", "MSIE 6.0; SV1", false},
		{"POST", "/", "MSIE 6.0; x", true},
		{"POST", "/", "MSIE 7.0; x", false},
		{"POST", "/", "MSIE 5.0; Opera", false},
		{"POST", "/none", explorer, false},
		{"POST", "/safari", explorer, false},
		{"POST", "/both", explorer, true},
		{"GET", "/", safari, false},
		{"GET", "/safari", safari, true},
		{"GET", "/both", safari, true},
		{"GET", "/safari", safari + " Chrome/1", false},
		{"GET", "/safari", "Safari/1 Linux", false},
	} {
		got := s.send(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: a\r\nUser-Agent: " + tt.agent + "\r\nContent-Length: 0\r\n\r\n")
		if got.Close != tt.closed {
			t.Errorf("%s %s by %q: closed %v", tt.method, tt.target, tt.agent, got.Close)
		}
	}
	if _, err := load(t, server(`keepalive_disable firefox;`)); err == nil || !strings.HasPrefix(err.Error(), `invalid value "firefox" in `) {
		t.Errorf("an unknown browser: %v", err)
	}
}
