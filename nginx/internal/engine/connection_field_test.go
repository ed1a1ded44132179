package engine_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// An upstream receives the Connection that proxy_set_header gives, spelt as it is, and with $http_connection the client's: but for the
// names of fields, which a proxy behind would take out of the request.
func TestConnectionToUpstream(t *testing.T) {
	requests := make(chan string, 1)
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		header := p.Header()
		requests <- header
		if strings.Contains(header, "\r\nUpgrade: a\r\n") {
			p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: UPGRADE\r\nUpgrade: a\r\n\r\n")
			return
		}
		p.Send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		p.Ended()
	})
	s := serve(t, server(strings.ReplaceAll(`listen 80;
		location / { proxy_pass http://UP; }
		location /client { proxy_pass http://UP; proxy_set_header X-Real-IP 1; proxy_set_header Connection $http_connection; proxy_set_header Upgrade $http_upgrade; }
		location /fixed { proxy_pass http://UP; proxy_set_header Connection "upgrade"; }
		location /empty { proxy_pass http://UP; proxy_set_header Connection ""; }`, "UP", up)))
	for _, tt := range []struct{ target, fields, want string }{
		{"/", "Connection: close", ""},
		{"/client", "Connection: Close", "Close"},
		{"/client", "Connection: keep-alive", "keep-alive"},
		{"/client", "Connection: x,Keep-alive\r\nConnection: b", "x,Keep-alive, b"},
		{"/client", "Connection: close, x-real-ip, content-length,transfer-encoding,host, x", "close, x"},
		{"/client", "Connection: x-real-ip", ""},
		{"/client", "X: 1", ""},
		{"/client", "Upgrade: a\r\nConnection: keep-alive, Upgrade", "keep-alive, Upgrade"},
		{"/client", "Upgrade: a\r\nConnection: Upgrade, x", "Upgrade"},
		{"/fixed", "Connection: close", "upgrade"},
		{"/empty", "Connection: close", ""},
	} {
		response := s.header("GET " + tt.target + " HTTP/1.1\r\nHost: a\r\n" + tt.fields + "\r\n\r\n")
		if got := fieldOf(<-requests, "Connection"); got != tt.want {
			t.Errorf("%s of %q: Connection %q, want %q", tt.target, tt.fields, got, tt.want)
		}
		if strings.HasPrefix(response, "HTTP/1.1 101 ") && fieldOf(response, "Connection") != "upgrade" {
			t.Errorf("the client got %q", response)
		}
	}
}

// fieldOf returns the value of a header's field, "" if it has none.
func fieldOf(header, name string) string {
	_, rest, _ := strings.Cut(header, "\r\n"+name+": ")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// A connection that the upstream was told to close is not used again.
func TestConnectionCloseToUpstream(t *testing.T) {
	up := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		p.Ended()
	})
	s := serve(t, server(`listen 80; location / { proxy_pass http://`+up+`; proxy_set_header Connection $http_connection; }`))
	for range 2 { // the target handles one request of each connection
		if got := s.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); got.body != "ok" {
			t.Errorf("%d %q", got.StatusCode, got.body)
		}
	}
}
