package proxy_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

func TestRequestHeader(t *testing.T) { onPaths(t, testRequestHeader) }
func testRequestHeader(t *testing.T, via path) {
	leaktest.Check(t)
	tests := []struct {
		name    string
		request []string // lines
		want    []string // lines as the target sees them, sorted
	}{
		{
			"nothing invented",
			[]string{"GET / HTTP/1.1", "Host: culvert.test"},
			[]string{"host: culvert.test", "x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
		{
			"end-to-end fields kept, lines not joined",
			[]string{"GET / HTTP/1.1", "Host: culvert.test", "User-Agent: me", "Accept-Encoding: br", "X-A: 1", "X-A: 2", "Cookie: a=b"},
			[]string{"accept-encoding: br", "cookie: a=b", "host: culvert.test", "user-agent: me", "x-a: 1", "x-a: 2",
				"x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
		{
			"hop-by-hop fields removed",
			[]string{"GET / HTTP/1.1", "Host: culvert.test", "Connection: keep-alive, X-Mine", "X-Mine: 1", "Keep-Alive: timeout=5",
				"Proxy-Connection: keep-alive", "Proxy-Authorization: Basic x", "TE: gzip, trailers", "Upgrade: h2c", "HTTP2-Settings: AAA"},
			[]string{"host: culvert.test", "te: trailers", "x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
		{
			"what the client claims of proxies is dropped",
			[]string{"GET / HTTP/1.1", "Host: culvert.test", "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil.test", "X-Forwarded-Proto: https", "Forwarded: for=6.6.6.6"},
			[]string{"host: culvert.test", "x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
		{
			// golang/go#50580, CVE-2021-32813, CVE-2024-45410
			"Connection can't name away what the proxy adds",
			[]string{"GET / HTTP/1.1", "Host: culvert.test", "Connection: X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto", "X-Forwarded-For: 6.6.6.6"},
			[]string{"host: culvert.test", "x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
		{
			"Connection can't name away credentials",
			[]string{"GET / HTTP/1.1", "Host: culvert.test", "Connection: Authorization, Cookie, Origin", "Authorization: Bearer t", "Cookie: a=b", "Origin: http://a.test"},
			[]string{"authorization: Bearer t", "cookie: a=b", "host: culvert.test", "origin: http://a.test",
				"x-forwarded-for: 127.0.0.1", "x-forwarded-host: culvert.test", "x-forwarded-proto: http"},
		},
	}
	target, heads := recording(t, ok)
	client := wiretest.Dial(t, gateway(t, via, target))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client.Send(strings.Join(test.request, "\r\n") + "\r\n\r\n")
			client.Status(200)
			got := wiretest.Lines(wiretest.Await(t, heads, "request"))
			if want := "GET / HTTP/1.1\n" + strings.Join(test.want, "\n"); got != want {
				t.Errorf("the target got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestRewrittenHeader(t *testing.T) { onPaths(t, testRewrittenHeader) }
func testRewrittenHeader(t *testing.T, via path) {
	leaktest.Check(t)
	target, heads := recording(t, ok)
	p := newProxy(t, via, proxy.Options{
		Upstream: groupAt(t, upstream.Options{}, target),
		Rewrite: func(o *proxy.Outbound) {
			o.Out.Host = ""
			o.Out.Header.Set("X-Forwarded-For", o.In.RemoteAddr[:4]+"…")
			o.Out.Header.Del("Cookie")
		},
	})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: culvert.test\r\nCookie: a=b\r\nConnection: x-forwarded-for\r\n\r\n")
	client.Status(200)
	want := "GET / HTTP/1.1\nhost: " + target + "\nx-forwarded-for: 127.…"
	if got := wiretest.Lines(wiretest.Await(t, heads, "request")); got != want {
		t.Errorf("the target got\n%s\nwant\n%s", got, want)
	}
}

func TestResponseHeader(t *testing.T) { onPaths(t, testResponseHeader) }
func testResponseHeader(t *testing.T, via path) {
	leaktest.Check(t)
	reply := "HTTP/1.1 404 Not Here\r\n" +
		"Content-Length: 2\r\n" +
		"Date: Sat, 21 Nov 2026 00:00:00 GMT\r\n" +
		"Connection: keep-alive, X-Hop\r\n" +
		"X-Hop: 1\r\n" +
		"Keep-Alive: timeout=5\r\n" +
		"Proxy-Authenticate: Basic\r\n" +
		"Upgrade: h2\r\n" +
		"Set-Cookie: a=1\r\n" +
		"Set-Cookie: b=2\r\n" +
		"Content-Encoding: gzip\r\n" +
		"\r\n\x1f\x8b"
	client := wiretest.Dial(t, gateway(t, via, wiretest.Replying(t, reply)))
	client.Send("GET / HTTP/1.1\r\nHost: culvert.test\r\nAccept-Encoding: gzip\r\n\r\n")
	want := "HTTP/1.1 404 Not Found\n" + strings.Join([]string{
		"content-encoding: gzip",
		"content-length: 2",
		"date: Sat, 21 Nov 2026 00:00:00 GMT",
		"set-cookie: a=1",
		"set-cookie: b=2",
	}, "\n")
	if got := wiretest.Lines(client.Header()); got != want {
		t.Errorf("the client got\n%s\nwant\n%s", got, want)
	}
	client.Receive("\x1f\x8b")
}

// HEAD has the length of a body that never comes, 204 and 304 have none at all.
func TestResponsesWithoutBody(t *testing.T) { onPaths(t, testResponsesWithoutBody) }
func testResponsesWithoutBody(t *testing.T, via path) {
	leaktest.Check(t)
	tests := []struct{ method, reply, want string }{
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nX: 1\r\n\r\n", "HTTP/1.1 200 OK\ncontent-length: 1000000\nx: 1"},
		{"GET", "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n", "HTTP/1.1 204 No Content\nx: 1"},
		{"GET", "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n", "HTTP/1.1 304 Not Modified\netag: \"a\""},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\ncontent-length: 0"},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.reply[9:12], func(t *testing.T) {
			target, _ := recording(t, strings.Replace(test.reply, "\r\n", "\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n", 1))
			client := wiretest.Dial(t, gateway(t, via, target))
			for range 2 { // the second shows that nothing was left on either connection
				client.Send(test.method + " / HTTP/1.1\r\nHost: culvert.test\r\n\r\n")
				got := strings.Replace(wiretest.Lines(client.Header()), "\ndate: Sat, 21 Nov 2026 00:00:00 GMT", "", 1)
				if got != test.want {
					t.Errorf("the client got\n%s\nwant\n%s", got, test.want)
				}
			}
		})
	}
}

// HTTP/1.0 clients get no chunks, and their connection's end is the body's.
func TestHTTP10Client(t *testing.T) { onPaths(t, testHTTP10Client) }
func testHTTP10Client(t *testing.T, via path) {
	leaktest.Check(t)
	client := wiretest.Dial(t, gateway(t, via, wiretest.Replying(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")))
	client.Send("GET / HTTP/1.0\r\n\r\n")
	head := client.Header()
	if strings.Contains(strings.ToLower(head), "transfer-encoding") {
		t.Errorf("the client got %q", head)
	}
	if body := client.Rest(); body != "ok" {
		t.Errorf("body %q", body)
	}
}
