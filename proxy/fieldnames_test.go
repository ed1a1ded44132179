package proxy_test

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// keeping starts a server that keeps the names of fields, in front of a target. It returns the server's address.
func keeping(t *testing.T, target string, o proxy.Options, around ...culvert.Filter) string {
	t.Helper()
	return keepingVia(t, upstream.HTTP1, target, o, around...)
}

// keepingVia is keeping for a target of a protocol.
func keepingVia(t *testing.T, protocol upstream.Protocol, target string, o proxy.Options, around ...culvert.Filter) string {
	t.Helper()
	g, err := upstream.New(upstream.Options{Name: "t", Protocol: protocol}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	o.Upstream, o.KeepFieldNames = g, true
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server.Server{Handler: filters.NewChain(around...).Then(p), KeepFieldNames: true, ErrorLog: wiretest.Quiet()}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	return l.Addr().String()
}

// undated is a header section without the value of Date.
func undated(header string) string {
	lines := strings.SplitAfter(header, "\r\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "Date: ") {
			lines[i] = "Date: now\r\n"
		}
	}
	return strings.Join(lines, "")
}

// Names of fields are sent as they were received, and in their order.
func TestKeepFieldNames(t *testing.T) {
	requests := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		requests <- p.Header()
		p.Send("HTTP/1.1 203 As it were\r\nx-IP: 1\r\nserver: T\r\nETAG: \"a\"\r\ncontent-length: 0\r\nX-ip: 2\r\nkeep-alive: 9\r\nConnection: X-Hop\r\nx-hop: h\r\n\r\n")
		p.Ended()
	})
	addr := keeping(t, target, proxy.Options{
		Rewrite: func(o *proxy.Outbound) { o.Out.Header.Set("X-Added", "a") },
		ModifyResponse: func(r *proxy.Response) {
			if r.Reason != "As it were" || len(r.FieldNames) != 8 || r.FieldNames[0] != "x-IP" {
				t.Errorf("%q %q", r.Reason, r.FieldNames)
			}
			r.Header.Set("X-Changed", "c")
		},
	})
	p := wiretest.Dial(t, addr)
	p.Send("POST /a HTTP/1.1\r\nx-UPPER: 1\r\nhost: a\r\nCOOKIE: c\r\ncontent-LENGTH: 2\r\nx-upper: 2\r\nconnection: x-gone\r\nx-gone: g\r\nTransfer-encodin: x\r\n\r\nhi")
	want := "POST /a HTTP/1.1\r\nx-UPPER: 1\r\nHost: a\r\nCOOKIE: c\r\nContent-Length: 2\r\nx-upper: 2\r\nTransfer-encodin: x\r\nX-Added: a\r\n\r\n"
	if got := <-requests; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
	want = "HTTP/1.1 203 As it were\r\nx-IP: 1\r\nserver: T\r\nETAG: \"a\"\r\nContent-Length: 0\r\nX-ip: 2\r\nDate: now\r\nX-Changed: c\r\n\r\n"
	if got := undated(p.Header()); got != want {
		t.Errorf("response %q, want %q", got, want)
	}
}

// The status line of a target's response is not that of what another handler responds in its place, nor of a status that a filter has
// changed.
func TestStatusLineOfAnother(t *testing.T) {
	recovering := filters.Recover(slog.New(slog.DiscardHandler))
	panics := filters.OnResponse(filters.ResponseHooks{Header: func(r *http.Request, _ int, _ http.Header) { panic("a hook's") }})
	changes := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(anotherStatus{w, 404}, r) })
	}
	for want, filter := range map[string]culvert.Filter{
		"HTTP/1.1 500 Internal Server Error": func(next http.Handler) http.Handler { return recovering(panics(next)) },
		"HTTP/1.1 404 Not Found":             changes,
		"HTTP/1.1 203 As it were":            func(next http.Handler) http.Handler { return next },
	} {
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			p.Send("HTTP/1.1 203 As it were\r\nx-IP: 1\r\ncontent-length: 0\r\n\r\n")
			p.Ended()
		})
		p := wiretest.Dial(t, keeping(t, target, proxy.Options{}, filter))
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if line, _, _ := strings.Cut(p.Header(), "\r\n"); line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
}

// anotherStatus is a filter's writer that changes the status.
type anotherStatus struct {
	http.ResponseWriter
	status int
}

func (w anotherStatus) WriteHeader(int)             { w.ResponseWriter.WriteHeader(w.status) }
func (w anotherStatus) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Names bring nothing back that was removed, and frame nothing.
func TestFieldNamesCarryNoFields(t *testing.T) {
	requests := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		requests <- p.Header()
		p.Send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
		p.Ended()
	})
	addr := keeping(t, target, proxy.Options{Rewrite: func(o *proxy.Outbound) {
		o.FieldNames = append(o.FieldNames, "TRANSFER-ENCODING", "Content-Length", "Content-Length", "X-Forwarded-For", "bad name", "x\r\ny", "Host", "connection")
		o.Out.Header["content-length"] = []string{"7"}
	}})
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nTe: trailers, x\r\nKEEP-alive: 1\r\nProxy-Connection: keep-alive\r\n\r\n")
	if got, want := <-requests, "GET / HTTP/1.1\r\nHost: a\r\nTe: trailers\r\n\r\n"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
	p.Response("GET")
}

// An upgrade's names are kept, too, and so is the order of its 101.
func TestKeepFieldNamesOfUpgrades(t *testing.T) {
	requests := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		requests <- p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nX-b: 1\r\nUpgrade: websocket\r\nconnection: Upgrade\r\nX-A: 2\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		p.Ended()
	})
	p := wiretest.Dial(t, keeping(t, target, proxy.Options{}))
	p.Send("GET /ws HTTP/1.1\r\nHost: a\r\nx-B: 1\r\nUPGRADE: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-A: 2\r\n\r\n")
	want := "GET /ws HTTP/1.1\r\nHost: a\r\nx-B: 1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-A: 2\r\n\r\n"
	if got := <-requests; !strings.HasPrefix(got, want[:len(want)-2]) {
		t.Errorf("request %q, want %q", got, want)
	}
	want = "HTTP/1.1 101 Switching Protocols\r\nX-b: 1\r\nUpgrade: websocket\r\nconnection: Upgrade\r\nX-A: 2\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	if got := p.Header(); got != want {
		t.Errorf("response %q, want %q", got, want)
	}
	p.End()
}

// Names that were received over HTTP/2 are in lower case, as they are there.
func TestKeepFieldNamesOfHTTP2(t *testing.T) {
	target := http2Script(t, func(f *http2.Framer, stream uint32) error {
		block := headerBlock(":status: 200\nx-b: 1\netag: \"a\"\nx-b: 2\ncontent-length: 0\nset-cookie: c\n")
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndStream: true, EndHeaders: true})
	})
	addr := keepingVia(t, upstream.H2C, target, proxy.Options{ModifyResponse: func(r *proxy.Response) {
		if got := strings.Join(r.FieldNames, " "); got != "content-length etag set-cookie x-b" || r.Reason != "" {
			t.Errorf("names %q, reason %q", got, r.Reason)
		}
		r.Header.Set("X-Changed", "c")
	}})
	p := wiretest.Dial(t, addr)
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	want := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\netag: \"a\"\r\nset-cookie: c\r\nx-b: 1\r\nx-b: 2\r\nDate: now\r\nX-Changed: c\r\n\r\n"
	if got := undated(p.Header()); got != want {
		t.Errorf("response %q, want %q", got, want)
	}
}

// Announced trailers are announced and sent with the names as the target has spelt them in Trailer, and in its order.
func TestKeepTrailerNames(t *testing.T) {
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 200 OK\r\nDate: now\r\nTrailer: x-LAST, X-Hop,X-first\r\nConnection: x-hop\r\nTransfer-Encoding: chunked\r\nTrailer: X-Third\r\n\r\n" +
			"2\r\nok\r\n0\r\nX-Third: 3\r\nX-First: 1\r\nX-Last: 2\r\nX-Hop: h\r\n\r\n")
		p.Ended()
	})
	for range 5 { // the order of a map would vary
		p := wiretest.Dial(t, keeping(t, target, proxy.Options{}))
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Receive("HTTP/1.1 200 OK\r\nDate: now\r\nTrailer: x-LAST, X-first, X-Third\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"2\r\nok\r\n0\r\nx-LAST: 2\r\nX-first: 1\r\nX-Third: 3\r\n\r\n")
	}
}
