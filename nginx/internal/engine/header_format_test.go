package engine_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// header sends a request to the first listener and returns the header of the response, but for the value of Date.
func (s *site) header(request string) string {
	s.t.Helper()
	p := wiretest.Dial(s.t, s.first)
	defer p.Close()
	p.Send(request)
	lines := strings.SplitAfter(p.Header(), "\r\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "Date: ") {
			lines[i] = "Date: now\r\n"
		}
	}
	return strings.Join(lines, "")
}

// The header is nginx's byte for byte: names as the upstream and the configuration spell them, their order, HTTP/1.1 in any case,
// its reasons, whether the connection is kept.
func TestHeaderBytes(t *testing.T) {
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 404 Gone fishing\r\nx-ONE: 1\r\nServer: t\r\nContent-length: 2\r\nX-two: 2\r\nconnection: keep-alive\r\n\r\nhi")
		p.Ended()
	})
	s := serve(t, server(`listen 80; port_in_redirect off; add_header x-ADDED "a" always; keepalive_timeout 75s 20s;
		location /proxied { proxy_pass http://`+target+`; }
		location /page { server_tokens off; return 503; }
		location /code { return 306; }
		location /url { return 302 https://a.example/; }
		location /path { return 301 /x; }`))
	const date = "Date: now\r\n"
	for _, c := range []struct{ request, want string }{
		{"GET /proxied HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Gone fishing\r\nServer: nginx/1.31.5\r\n" + date +
			"Content-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=20\r\nx-ONE: 1\r\nX-two: 2\r\n" +
			"Expires: Thu, 01 Jan 1970 00:00:01 GMT\r\nCache-Control: private, no-cache\r\nx-ADDED: a\r\n\r\n"},
		{"GET /page HTTP/1.0\r\n\r\n", "HTTP/1.1 503 Service Temporarily Unavailable\r\nServer: nginx\r\n" + date +
			"Content-Type: text/html\r\nContent-Length: 190\r\nConnection: close\r\nExpires: Thu, 01 Jan 1970 00:00:01 GMT\r\n" +
			"Cache-Control: private, no-cache\r\nx-ADDED: a\r\n\r\n"},
		{"GET /code HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 306 \r\nServer: nginx/1.31.5\r\n" + date +
			"Content-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\nx-ADDED: a\r\n\r\n"},
		{"GET /url HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 302 Moved Temporarily\r\nServer: nginx/1.31.5\r\n" + date +
			"Content-Type: text/html\r\nContent-Length: 145\r\nConnection: keep-alive\r\nKeep-Alive: timeout=20\r\n" +
			"Location: https://a.example/\r\nx-ADDED: a\r\n\r\n"},
		{"GET /path HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 301 Moved Permanently\r\nServer: nginx/1.31.5\r\n" + date +
			"Content-Type: text/html\r\nContent-Length: 169\r\nLocation: http://a/x\r\nConnection: keep-alive\r\nKeep-Alive: timeout=20\r\nx-ADDED: a\r\n\r\n"},
	} {
		if got := s.header(c.request); got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.request, got, c.want)
		}
	}
}

// Requests to upstreams have the configured fields first, in the order of the file, and then the client's, as they were spelt.
func TestUpstreamHeaderBytes(t *testing.T) {
	requests := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		requests <- p.Header()
		p.Send("HTTP/1.1 204 No Content\r\n\r\n")
		p.Ended()
	})
	s := serve(t, server(`listen 80; location / { proxy_set_header x-real-IP 1; proxy_set_header HOST h; proxy_set_header X-Gone ""; proxy_pass http://`+target+`; }`))
	s.header("POST / HTTP/1.1\r\nHost: a\r\nx-gone: 1\r\nACCEPT: */*\r\nContent-Length: 0\r\nX-REAL-ip: 2\r\nuser-agent: u\r\n\r\n")
	want := "POST / HTTP/1.1\r\nHost: h\r\nx-real-IP: 1\r\nContent-Length: 0\r\nACCEPT: */*\r\nuser-agent: u\r\n\r\n"
	if got := <-requests; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What add_header adds stands where nginx puts it, behind the fields of its own, also if there is none of its own; and an
// upstream's 304 keeps its Content-Type, while nginx's own has none.
func TestPlacesOfAddedFields(t *testing.T) {
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 304 Not Modified\r\nConnection: close\r\nContent-Type: a/b\r\nVary: x\r\n\r\n")
		p.Ended()
	})
	s := serve(t, map[string]string{"a.txt": "a", "nginx.conf": `events {} http { access_log off; server { listen 80; keepalive_timeout 75s;
		location /204 { add_header X-A a; add_header Content-Type b/c; add_header vary y; add_header Cache-Control no-store; add_header Location d; return 204; }
		location /expires { expires 1m; add_header X-A a; add_header Cache-Control public; return 204; }
		location /304 { add_header X-A a; add_header Vary y; proxy_pass http://` + target + `; }
		location /a.txt { root .; if_modified_since before; add_header X-A a; } } }`})
	const front = "Server: nginx/1.31.5\r\nDate: now\r\n"
	for request, want := range map[string]string{
		"/204": "HTTP/1.1 204 No Content\r\n" + front + "Connection: keep-alive\r\nX-A: a\r\nContent-Type: b/c\r\nvary: y\r\nCache-Control: no-store\r\nLocation: d\r\n\r\n",
		"/304": "HTTP/1.1 304 Not Modified\r\n" + front + "Content-Type: a/b\r\nConnection: keep-alive\r\nVary: x\r\nX-A: a\r\nVary: y\r\n\r\n",
	} {
		equal(t, request, s.header("GET "+request+" HTTP/1.1\r\nHost: a\r\n\r\n"), want)
	}
	if got := s.header("GET /expires HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(got, "\r\nCache-Control: max-age=60\r\nX-A: a\r\nCache-Control: public\r\n") {
		t.Errorf("%q", got)
	}
	if got := s.header("GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: Sun, 29 Nov 2099 00:00:00 GMT\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 304 ") || strings.Contains(got, "Content-Type") {
		t.Errorf("%q", got)
	}
}

// A client that waits before it sends its body is told to send it to a return, too, as by nginx, and the connection is kept.
func TestContinueBeforeReturn(t *testing.T) {
	s := serve(t, server(`listen 80; location / { return 301 /x; } location /error { return 403; }`))
	p := wiretest.Dial(t, s.first)
	p.Send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
	p.Receive("HTTP/1.1 100 Continue\r\n\r\n")
	p.Send("abcGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
	for range 2 {
		if got, _ := p.Response("PUT"); got.StatusCode != 301 {
			t.Errorf("status %d", got.StatusCode)
		}
	}
	if got := s.header("PUT /error HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("%q", got)
	}
}

func TestServerTokens(t *testing.T) {
	for conf, want := range map[string]string{"": "nginx/1.31.5", "server_tokens on;": "nginx/1.31.5", "server_tokens build;": "nginx/1.31.5", "server_tokens off;": "nginx"} {
		s := serve(t, server(`listen 80; location / { `+conf+` return 404; }`))
		got := s.get("/")
		equal(t, conf, got.Header.Get("Server"), want)
		if !strings.Contains(got.body, "<hr><center>"+want+"</center>") {
			t.Errorf("%s: %q", conf, got.body)
		}
	}
	if _, err := load(t, server(`server_tokens maybe;`)); err == nil {
		t.Error("no error")
	}
}
