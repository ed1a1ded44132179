package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// through dials target.test:443 by the proxy's URL.
func through(t *testing.T, url string, o upstream.EgressOptions) (net.Conn, error) {
	t.Helper()
	dial, err := upstream.DialThrough(url, o)
	if err != nil {
		t.Fatal(err)
	}
	return dial(t.Context(), "tcp", "target.test:443")
}

// The request names the target and has the credentials, and what the target sends at once behind the response is its own.
func TestConnectProxy(t *testing.T) {
	for name, response := range map[string]string{
		"plain":     "HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.0":  "HTTP/1.0 200 Connection established\r\nProxy-Agent: x\r\n\r\n",
		"no reason": "HTTP/1.1 299\r\n\r\n",
		"interim":   "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		// Which a client must ignore (RFC 9110 section 9.3.6).
		"a length":  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		"no length": "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked, x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			got := make(chan string, 1)
			addr := wiretest.Target(t, func(p *wiretest.Peer) {
				got <- p.Header()
				p.Send(response + "early")
				p.Receive("hello")
				p.Send("late")
			})
			c, err := through(t, "http://user:p%40ss@"+addr, upstream.EgressOptions{Header: http.Header{"X-Team": {"a"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, ok := c.(*net.TCPConn); !ok {
				t.Errorf("the kernel can't move the bytes of a %T", c)
			}
			header := <-got
			if !strings.HasPrefix(header, "CONNECT target.test:443 HTTP/1.1\r\nHost: target.test:443\r\n") ||
				!strings.Contains(header, "\r\nProxy-Authorization: Basic dXNlcjpwQHNz\r\n") || !strings.Contains(header, "\r\nX-Team: a\r\n") {
				t.Errorf("the proxy got %q", header)
			}
			p := wiretest.NewPeer(t, c)
			p.Receive("early")
			p.Send("hello")
			if rest := p.Rest(); rest != "late" {
				t.Errorf("the target has sent %q", rest)
			}
		})
	}
}

// What the proxy itself does is not the target's failure. No error shows a password.
func TestConnectProxyFails(t *testing.T) {
	long := strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 70)
	for response, test := range map[string]struct {
		status int
		own    bool
		text   string
	}{
		"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n": {407, true, "407 Proxy Authentication Required"},
		"HTTP/1.1 403 Forbidden\r\n\r\n":                                          {403, true, "403"},
		"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n":                               {302, true, "302"},
		"HTTP/1.1 502 Bad Gateway\r\n\r\n":                                        {502, false, "502"},
		"HTTP/1.1 504 Gateway Timeout\r\n\r\n":                                    {504, false, "504"},
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                                {0, true, "no valid status line"},
		"HTTP/2.0 200 OK\r\n\r\n":                                                 {0, true, "no valid status line"},
		"HTTP/1.1 099 OK\r\n\r\n":                                                 {0, true, "no valid status line"},
		"SSH-2.0-OpenSSH\r\n":                                                     {0, true, "no valid status line"},
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n":                                     {0, true, "malformed"},
		"HTTP/1.1 200 OK\r\n":                                                     {0, true, "unexpected EOF"},
		"":                                                                        {0, true, "unexpected EOF"},
		"HTTP/1.1 200 OK\r\n" + long + "\r\n":                                     {0, true, "more than 65536 bytes"},
		strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: xxxxxxxxxxxxxxxxxxxx\r\n\r\n", 2000) + "HTTP/1.1 200 OK\r\n\r\n": {0, true, "more than 65536 bytes"},
	} {
		name := response[:min(len(response), 40)]
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			addr := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				_, _ = io.WriteString(p.Conn, response) // which the gateway may cut
			})
			c, err := through(t, "http://user:secret@"+addr, upstream.EgressOptions{})
			checkEgressError(t, c, err, "http://"+addr, test.status, test.own, test.text)
		})
	}
}

func checkEgressError(t *testing.T, c net.Conn, err error, proxy string, status int, own bool, text string) {
	t.Helper()
	var e *upstream.EgressError
	if c != nil || !errors.As(err, &e) || e.Status != status || e.Proxy != proxy || !strings.Contains(err.Error(), text) {
		t.Fatalf("%v, %#v; want %q from %s with status %d", c, err, text, proxy, status)
	}
	var of *culvert.Error
	if got := errors.As(err, &of) && of.Kind == culvert.Internal; got != own {
		t.Errorf("%v is the proxy's own failure: %v, want %v", err, got, own)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v shows the password", err)
	}
}

// A proxy that can't be reached, or is not the one that its certificate should name, is not the target's failure.
func TestEgressProxyNotReached(t *testing.T) {
	leaktest.Check(t)
	addr := wiretest.Unused(t)
	for _, scheme := range []string{"http", "https", "socks5"} {
		c, err := through(t, scheme+"://"+addr, upstream.EgressOptions{})
		checkEgressError(t, c, err, scheme+"://"+addr, 0, true, "refused")
	}
	foreign := httptest.NewTLSServer(http.NotFoundHandler())
	foreign.Config.ErrorLog = wiretest.Quiet()
	defer foreign.Close()
	c, err := through(t, foreign.URL, upstream.EgressOptions{})
	checkEgressError(t, c, err, foreign.URL, 0, true, "certificate")
	none := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	c, err = through(t, "http://a:1", upstream.EgressOptions{DialContext: none})
	checkEgressError(t, c, err, "http://a:1", 0, true, "(nil, nil)")
}

// Only what can be a target is sent to a proxy.
func TestEgressTarget(t *testing.T) {
	reached := errors.New("reached")
	dial, err := upstream.DialThrough("http://a:1", upstream.EgressOptions{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, reached }})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		network, addr string
		valid         bool
	}{
		{"tcp", "b:1", true}, {"tcp4", "192.0.2.1:1", true}, {"tcp", "[2001:db8::1]:1", true}, {"tcp", "bücher.example:1", true},
		{"unix", "/run/b", false}, {"udp", "b:1", false}, {"tcp", "b", false}, {"tcp", "b:http", false}, {"tcp", "b\r\nX: y:1", false},
		{"tcp", "[fe80::1%eth0]:1", false}, {"tcp", "b c:1", false}, {"tcp", "-\u00ad.example:1", false},
	} {
		if _, err := dial(t.Context(), test.network, test.addr); errors.Is(err, reached) != test.valid {
			t.Errorf("%s %q: %v", test.network, test.addr, err)
		}
	}
}

// The end of the context ends each step. What the target may be waited for is its failure, and nothing else.
func TestEgressStalls(t *testing.T) {
	for name, test := range map[string]struct {
		url    string
		script func(p *wiretest.Peer)
		own    bool
	}{
		"dial":           {"http://a:1", nil, true},
		"request":        {"http://a:1", func(*wiretest.Peer) {}, true},
		"response":       {"http://a:1", func(p *wiretest.Peer) { p.Header() }, false},
		"part of it":     {"http://a:1", func(p *wiretest.Peer) { p.Header(); p.Send("HTTP/1.1 200 OK\r\nX: ") }, false},
		"handshake":      {"https://a:1", func(p *wiretest.Peer) { _, _ = p.R.Peek(5) }, true},
		"SOCKS method":   {"socks5://a:1", func(p *wiretest.Peer) { p.Receive("\x05\x01\x00") }, true},
		"SOCKS password": {"socks5://u:p@a:1", func(p *wiretest.Peer) { p.Receive("\x05\x02\x00\x02"); p.Send("\x05\x02"); p.Receive("\x01\x01u\x01p") }, true},
		"SOCKS response": {"socks5://a:1", func(p *wiretest.Peer) {
			p.Receive("\x05\x01\x00")
			p.Send("\x05\x00")
			p.Receive("\x05\x01\x00\x03\x01b\x00\x01")
		}, false},
		"SOCKS response, password": {"socks5://u:p@a:1", func(p *wiretest.Peer) {
			p.Receive("\x05\x02\x00\x02")
			p.Send("\x05\x02")
			p.Receive("\x01\x01u\x01p")
			p.Send("\x01\x00")
			p.Receive("\x05\x01\x00\x03\x01b\x00\x01")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, err := upstream.DialThrough(test.url, upstream.EgressOptions{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					if test.script == nil {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					near, far := net.Pipe()
					t.Cleanup(func() { far.Close() })
					go test.script(wiretest.NewPeer(t, far))
					return near, nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				c, err := dial(ctx, "tcp", "b:1")
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("it took %v", took)
				}
				checkEgressError(t, c, err, strings.Replace(test.url, "u:p@", "", 1), 0, test.own, "") // the text is that of the context or of the deadline
			})
		})
	}
}

// A name is sent to a SOCKS server as it is, with the credentials.
func TestSOCKSProxy(t *testing.T) {
	leaktest.Check(t)
	addr := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Receive("\x05\x02\x00\x02")
		p.Send("\x05\x02")
		p.Receive("\x01\x04user\x06secret")
		p.Send("\x01\x00")
		p.Receive("\x05\x01\x00\x03\x0btarget.test\x01\xbb")
		p.Send("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00early")
		p.Receive("hello")
	})
	for _, scheme := range []string{"socks5", "socks5h"} {
		c, err := through(t, scheme+"://user:secret@"+addr, upstream.EgressOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.(*net.TCPConn); !ok {
			t.Errorf("the kernel can't move the bytes of a %T", c)
		}
		p := wiretest.NewPeer(t, c)
		p.Receive("early")
		p.Send("hello")
		p.Close()
	}
}

func TestSOCKSProxyFails(t *testing.T) {
	for reply, test := range map[string]struct {
		own  bool
		text string
	}{
		"\x05\xff":                         {true, "no acceptable authentication methods"},
		"\x04\x00":                         {true, "unexpected protocol version"},
		"HTTP/1.1 400 Bad Request\r\n\r\n": {true, "unexpected protocol version"},
		"\x05\x00\x05\x02\x00\x01":         {true, "not allowed by ruleset"},
		"\x05\x00\x05\x01\x00\x01":         {false, "general SOCKS server failure"},
		"\x05\x00\x05\x04\x00\x01":         {false, "host unreachable"},
		"\x05\x00\x05\x05\x00\x01":         {false, "connection refused"},
		"\x05\x00\x05\x07\x00\x01":         {true, "command not supported"},
		"\x05\x00\x05\x08\x00\x01":         {false, "address type not supported"},
		"\x05\x00\x04\x05\x00\x01":         {true, "unexpected protocol version"},
		"\x05\x00":                         {true, "EOF"},
	} {
		leaktest.Check(t)
		addr := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Receive("\x05\x01\x00")
			p.Send(reply)
			_, _ = p.R.Discard(3 + 2 + 11 + 2)
		})
		c, err := through(t, "socks5://"+addr, upstream.EgressOptions{})
		checkEgressError(t, c, err, "socks5://"+addr, 0, test.own, test.text)
	}
}

// Errors of DialThrough say what to write.
func TestDialThroughOptions(t *testing.T) {
	for _, test := range []struct {
		url  string
		o    upstream.EgressOptions
		want string
	}{
		{"proxy.test:3128", upstream.EgressOptions{}, "write http://host:port"},
		{"ftp://user:secret@proxy.test", upstream.EgressOptions{}, `scheme "ftp" is none of http, https, socks5 and socks5h`},
		{"http://user:sec\x7fret@proxy.test", upstream.EgressOptions{}, "can't be parsed"},
		{"http://", upstream.EgressOptions{}, "host and port are both needed"},
		{"http://proxy.test:0", upstream.EgressOptions{}, "port"},
		{"http://user:secret@proxy.test/path", upstream.EgressOptions{}, "neither a path nor a query"},
		{"http://proxy.test", upstream.EgressOptions{TLSConfig: &tls.Config{}}, "TLSConfig needs the scheme https"},
		{"http://proxy.test", upstream.EgressOptions{Header: http.Header{"Connection": {"close"}}}, "Connection"},
		{"http://proxy.test", upstream.EgressOptions{Header: http.Header{"X": {"a\r\nb"}}}, "invalid value of X"},
		{"http://user:secret@proxy.test", upstream.EgressOptions{Header: http.Header{"Proxy-Authorization": {"Bearer x"}}}, "credentials in the URL and in Header"},
		{"socks5://proxy.test", upstream.EgressOptions{Header: http.Header{"X": {"a"}}}, "SOCKS5 has no Header"},
	} {
		_, err := upstream.DialThrough(test.url, test.o)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", test.url, err, test.want)
		}
	}
}

// Checks that fail by the proxy alone say nothing about the target.
func TestChecksThroughAProxy(t *testing.T) {
	for status, want := range map[int]bool{http.StatusProxyAuthRequired: true, http.StatusBadGateway: false} {
		leaktest.Check(t)
		checked := make(chan struct{}, 100)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			select {
			case checked <- struct{}{}:
			default:
			}
		}))
		t.Cleanup(front.Close)
		dial, err := upstream.DialThrough(front.URL, upstream.EgressOptions{})
		if err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, upstream.Options{DialContext: dial, Check: &upstream.Check{Interval: time.Millisecond, Fall: 1}}, upstream.Target{Addr: "b:1"})
		for range 4 {
			wiretest.Await(t, checked, "a check")
		}
		for s := range g.Targets() {
			if s.Healthy != want {
				t.Errorf("behind %d the target is healthy: %v", status, s.Healthy)
			}
		}
	}
}
