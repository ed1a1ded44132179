package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// Connections of checks are the gateway's own, which no client is named for, and those of another port have no header.
func TestProxyProtocolOfChecks(t *testing.T) {
	const local = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	const preface = "PRI * HTTP/2.0\r\n"
	for name, test := range map[string]struct {
		version upstream.ProxyProtocol
		check   upstream.Check
		want    string
	}{
		"connection, 1":   {upstream.ProxyProtocolV1, upstream.Check{}, "PROXY UNKNOWN\r\n"},
		"connection, 2":   {upstream.ProxyProtocolV2, upstream.Check{}, local},
		"request, 1":      {upstream.ProxyProtocolV1, upstream.Check{Path: "/"}, "PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n"},
		"request, 2":      {upstream.ProxyProtocolV2, upstream.Check{Path: "/"}, local + "GET / HTTP/1.1\r\n"},
		"gRPC, 2":         {upstream.ProxyProtocolV2, upstream.Check{GRPC: true}, local + preface},
		"TLS, 2":          {upstream.ProxyProtocolV2, upstream.Check{Path: "/", Scheme: "https"}, local + "\x16\x03\x01"},
		"another port, 1": {upstream.ProxyProtocolV1, upstream.Check{Path: "/", Port: 1}, "GET / HTTP/1.1\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			seen := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				got, _ := p.R.Peek(len(test.want))
				select {
				case seen <- string(got):
				default:
				}
			})
			addr := target
			test.check.Interval, test.check.Jitter = time.Hour, -1
			if test.check.Port != 0 {
				host, port, _ := net.SplitHostPort(target)
				test.check.Port, _ = strconv.Atoi(port)
				addr = net.JoinHostPort(host, "1")
			}
			g, err := upstream.New(upstream.Options{ProxyProtocol: test.version, Check: &test.check}, upstream.Target{Addr: addr})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if got := wiretest.Await(t, seen, "the first bytes"); got != test.want {
				t.Errorf("the target got %q, want %q", got, test.want)
			}
		})
	}
}

// RoundTrip names the client as package proxy does.
func TestProxyProtocolOfRoundTrip(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		line, _ := p.R.ReadString('\n')
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(line)) + "\r\n\r\n" + line)
	})
	transport, err := upstream.NewTransport(upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+target+"/", nil)
	r.RemoteAddr, r.RequestURI = "[2001:db8::1]:9", ""
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "PROXY TCP6 2001:db8::1 :: 9 0\r\n" {
		t.Errorf("the target got %q, %v", body, err)
	}
}

func TestProxyProtocolOptions(t *testing.T) {
	own, err := upstream.NewTransport(upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]upstream.Options{
		"unknown version 3":                 {ProxyProtocol: 3},
		"unknown version -1":                {ProxyProtocol: -1},
		"streams of several clients":        {ProxyProtocol: upstream.ProxyProtocolV1, Protocol: upstream.H2C},
		"streams of several":                {ProxyProtocol: upstream.ProxyProtocolV2, Protocol: upstream.HTTP2, Scheme: "https"},
		"a Transport that does not have it": {ProxyProtocol: upstream.ProxyProtocolV1, Transport: http.DefaultTransport},
		"a Transport that does not":         {ProxyProtocol: upstream.ProxyProtocolV2, Transport: own},
	} {
		if _, err := upstream.New(o, upstream.Target{Addr: "a:1"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	newGroup(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1, Transport: own}, upstream.Target{Addr: "a:1"})
}

// The time in which the header must be sent does not bound what is sent behind it.
func TestProxyProtocolLeavesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		g := newGroup(t, upstream.Options{ProxyProtocol: upstream.ProxyProtocolV1, DialTimeout: time.Second,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}, upstream.Target{Addr: "a:1"})
		l, err := g.Pick(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Done(upstream.Outcome{})
		c, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.Sleep(time.Minute)
		if _, err := c.Write([]byte("late")); err != nil {
			t.Error(err)
		}
	})
}
