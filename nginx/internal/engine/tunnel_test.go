package engine_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// tunnelTarget is a server that reads a line behind which the client sends no more.
func tunnelTarget(t *testing.T) string {
	t.Helper()
	return wiretest.Target(t, func(p *wiretest.Peer) { p.Send("heard " + p.Rest()) })
}

func connectTo(addr string, fields ...string) string {
	return "CONNECT " + addr + " HTTP/1.1\r\nHost: x\r\n" + strings.Join(fields, "") + "\r\n"
}

// A tunnel has what the client sends with its request, and is logged as nginx logs it.
func TestTunnel(t *testing.T) {
	leaktest.Check(t)
	target := tunnelTarget(t)
	s := serve(t, map[string]string{"nginx.conf": `events {} http { log_format t "$request $status $host $request_port $upstream_addr $body_bytes_sent";
		access_log access.log t; server { add_header X-A b always; tunnel_pass; } }`})
	client := wiretest.Dial(t, s.first)
	client.Send(connectTo(target) + "early ")
	head := client.Header()
	if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\nServer: nginx") || !strings.Contains(head, "\r\nX-A: b\r\n") || !strings.Contains(head, "\r\nDate: ") ||
		strings.Contains(head, "Content-") || strings.Contains(head, "Transfer-Encoding") {
		t.Errorf("the client got %q", head)
	}
	client.Send("late")
	client.End()
	if got := client.Rest(); got != "heard early late" {
		t.Errorf("the client got %q", got)
	}
	host, port, _ := strings.Cut(target, ":")
	equal(t, "logged", eventually(t, func() string { return s.file("access.log") }), "CONNECT "+target+" HTTP/1.1 200 "+host+" "+port+" "+target+" 16\n")
}

// There is no tunnel but where the file says so, nor one to a place that the file does not name.
func TestTunnelIsRefused(t *testing.T) {
	leaktest.Check(t)
	target := tunnelTarget(t)
	const listed = `tunnel_pass $allowed; error_page 502 /page; location /page { return 200 page; }`
	for _, test := range []struct {
		server, request string
		status          int
	}{
		{listed, connectTo("other:443"), 500},
		{listed, connectTo("allowed:80"), 500},
		{listed, connectTo("dead:443"), 502},
		{listed, connectTo("allowed:443", "Content-Length: 3\r\n"), 400},
		{listed, connectTo("allowed:443", "Transfer-Encoding: chunked\r\n"), 400},
		{listed, "CONNECT allowed:443 HTTP/1.0\r\nHost: x\r\n\r\n", 405},
		{"", connectTo(target), 405},
		{"tunnel_pass; deny 127.0.0.1;", connectTo(target), 403},
		{"tunnel_pass; location / { root html; }", connectTo(target), 405},
		{"tunnel_pass;", connectTo("unix:80"), 500},
	} {
		s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("TARGET", target, "UNUSED", wiretest.Unused(t), "SERVER", test.server).Replace(`
			events {} http { access_log off; map $host:$request_port $allowed { "allowed:443" TARGET; "dead:443" UNUSED; } server { SERVER } }`)})
		client := wiretest.Dial(t, s.first)
		client.Send(test.request)
		if resp, _ := client.Response("CONNECT"); resp.StatusCode != test.status || !resp.Close {
			t.Errorf("%s %q: %d, close %v, want %d", test.server, test.request, resp.StatusCode, resp.Close, test.status)
		}
	}
	s := serve(t, server("tunnel_pass;"))
	client := wiretest.Dial(t, s.first)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, _ := client.Response("GET"); resp.StatusCode != 405 || resp.Close {
		t.Errorf("GET: %d, close %v", resp.StatusCode, resp.Close)
	}
}

// The credentials of a CONNECT are those for a proxy.
func TestTunnelWithPassword(t *testing.T) {
	leaktest.Check(t)
	target := tunnelTarget(t)
	s := serve(t, map[string]string{"passwords": "u:{PLAIN}p\n", "nginx.conf": `events {} http { log_format user "$remote_user $status";
		server { access_log access.log user; auth_basic realm; auth_basic_user_file passwords; tunnel_pass; } }`})
	given := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p")) + "\r\n"
	for fields, want := range map[string]string{
		"": "407", "Authorization: " + given: "407", "Proxy-Authorization: " + given: "200", "Proxy-Authorization: " + strings.Replace(given, " ", "  ", 1): "200",
	} {
		client := wiretest.Dial(t, s.first)
		client.Send(connectTo(target, fields))
		head := client.Header()
		if !strings.HasPrefix(head, "HTTP/1.1 "+want+" ") || strings.Contains(head, "\r\nProxy-Authenticate: Basic realm=\"realm\"\r\n") != (want == "407") {
			t.Errorf("with %q the client got %q", fields, head)
		}
		client.End()
		client.Rest()
	}
	eventually(t, func() string {
		if log := s.file("access.log"); strings.Contains(log, "u 200\n") {
			return log
		}
		return ""
	})
}

// The credentials of a CONNECT, which are a proxy's, reach no server behind an error page, a mirror or a post_action.
func TestTunnelPasswordStaysHere(t *testing.T) {
	leaktest.Check(t)
	seen := make(chan string, 1)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Authorization")
	}))
	defer backend.Close()
	for _, directives := range []string{
		"error_page 502 /seen;", "post_action /seen;", "mirror /seen;",
	} {
		s := serve(t, with(server(`auth_basic realm; auth_basic_user_file passwords; tunnel_pass `+wiretest.Unused(t)+`; `+directives+`
			location = /seen { mirror off; auth_basic off; proxy_pass `+backend.URL+`; }`), "passwords", "u:{PLAIN}p\n"))
		client := wiretest.Dial(t, s.first)
		client.Send(connectTo("a.test:1", "Proxy-Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("u:p"))+"\r\n"))
		client.Header()
		equal(t, directives, wiretest.Await(t, seen, directives), "GET /seen ")
	}
}

// The next server of an upstream is used if one can't be reached, unless tunnel_next_upstream is off.
func TestTunnelNextUpstream(t *testing.T) {
	leaktest.Check(t)
	target := tunnelTarget(t)
	for directive, want := range map[string]int{"": 200, "tunnel_next_upstream off;": 502} {
		s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("TARGET", target, "UNUSED", wiretest.Unused(t), "NEXT", directive).Replace(`events {} http {
			access_log off; upstream u { server UNUSED; server TARGET; } server { NEXT tunnel_pass u; } }`)})
		client := wiretest.Dial(t, s.first)
		client.Send(connectTo("any:1"))
		if head := client.Header(); !strings.HasPrefix(head, map[int]string{200: "HTTP/1.1 200 ", 502: "HTTP/1.1 502 "}[want]) {
			t.Errorf("%q: the client got %q", directive, head)
		}
		client.End()
		client.Rest()
	}
}
