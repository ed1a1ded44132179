package proxy_test

import (
	"bytes"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

// quietTarget responds with 1 KiB to each request with a body of the length, and allocates nothing.
func quietTarget(t testing.TB, length int) string {
	reply := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\nContent-Length: 1024\r\n\r\n"), bytes.Repeat([]byte("x"), 1024)...)
	return wiretest.Target(t, func(p *wiretest.Peer) {
		buf := make([]byte, 64<<10)
		for n, missing := 0, -1; ; { // of buf, and of the body; -1: the header has not ended
			m, err := p.Conn.Read(buf[n:])
			if err != nil {
				return
			}
			if missing >= 0 {
				missing -= m
			} else if _, body, ended := bytes.Cut(buf[:n+m], []byte("\r\n\r\n")); ended {
				missing, n = length-len(body), 0
			} else {
				n += m
			}
			if missing != 0 {
				continue
			}
			missing = -1
			if _, err := p.Conn.Write(reply); err != nil {
				return
			}
		}
	})
}

// exchange returns what does one exchange, as often as it is called. The writer allocates
// nothing.
func exchange(t testing.TB, via path, method string, body []byte) func() {
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, quietTarget(t, len(body)))})
	r := &http.Request{Method: method, URL: &url.URL{Path: "/path", RawQuery: "q=1"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "culvert.test", RemoteAddr: "192.0.2.7:1234",
		Header: http.Header{"User-Agent": {"bench"}, "Accept": {"*/*"}, "Cookie": {"a=b"}}, ContentLength: int64(len(body))}
	content := &again{*bytes.NewReader(body)}
	w := quietWriter{discard{http.Header{}}}
	return func() {
		clear(w.h)
		if len(body) > 0 {
			content.Reset(body)
			r.Body = content
		}
		p.ServeHTTP(w, r)
		if w.h.Get("Content-Length") != "1024" {
			t.Fatalf("response %v", w.h)
		}
	}
}

// quietWriter is a discard with what net/http's writers can do besides.
type quietWriter struct{ discard }

func (quietWriter) SetReadDeadline(time.Time) error  { return nil }
func (quietWriter) SetWriteDeadline(time.Time) error { return nil }
func (quietWriter) EnableFullDuplex() error          { return nil }

// again is a body that needs no new memory.
type again struct{ bytes.Reader }

func (*again) Close() error { return nil }

// The allocations of an own exchange are counted, so that no change adds one unnoticed: the names and
// values of header fields, the slices that hold them, X-Forwarded-*, and the map of the response's header.
func TestAllocationsOfAnExchange(t *testing.T) {
	if raceDetector {
		t.Log("the race detector's would be counted")
		return
	}
	for _, test := range []struct {
		method string
		body   []byte
		most   float64
	}{
		{"GET", nil, 3},
		{"POST", bytes.Repeat([]byte("x"), 16<<10), 4},
	} {
		do := exchange(t, ownExchange, test.method, test.body)
		do()
		if n := testing.AllocsPerRun(1000, do); n > test.most {
			t.Errorf("%s: %v allocations, at most %v", test.method, n, test.most)
		} else {
			t.Logf("%s: %v allocations", test.method, n)
		}
	}
}

// endToEnd returns what sends a GET to package server in front of the proxy, and reads the response. keepNames has both keep
// the names of fields.
func endToEnd(t testing.TB, keepNames bool) func() {
	p := newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{}, quietTarget(t, 0)), KeepFieldNames: keepNames})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server.Server{Handler: filters.NewChain().Then(p), KeepFieldNames: keepNames}
	ended := make(chan error)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	buf := make([]byte, 4<<10)
	return func() {
		if _, err := conn.Write(getWithFields); err != nil {
			t.Fatal(err)
		}
		for n, body := 0, 0; body < 1024; {
			m, err := conn.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
			if i := bytes.Index(buf[:n], []byte("\r\n\r\n")); i > 0 {
				body = n - i - 4
			}
		}
	}
}

var getWithFields = []byte("GET /path?q=1 HTTP/1.1\r\nHost: culvert.test\r\nUser-Agent: bench\r\nAccept: */*\r\nCookie: a=b\r\n\r\n")

// From the client's request to its response only the texts of the two header sections are allocated.
func TestAllocationsEndToEnd(t *testing.T) {
	if raceDetector {
		t.Log("the race detector's would be counted")
		return
	}
	for _, keepNames := range []bool{false, true} {
		do := endToEnd(t, keepNames)
		do()
		if n := testing.AllocsPerRun(1000, do); n > 2 {
			t.Errorf("names kept: %v: %v allocations, at most 2", keepNames, n)
		}
	}
}

// BenchmarkEndToEnd is TestAllocationsEndToEnd's exchange.
func BenchmarkEndToEnd(b *testing.B) {
	do := endToEnd(b, false)
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
}

// BenchmarkExchange is the handler alone, over a real connection to a target that does next to
// nothing.
func BenchmarkExchange(b *testing.B) {
	for name, body := range map[string][]byte{"GET": nil, "POST": bytes.Repeat([]byte("x"), 16<<10)} {
		b.Run(name, func(b *testing.B) {
			do := exchange(b, ownExchange, name, body)
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

// BenchmarkUpload is a body that is sent while it is received, on both paths.
func BenchmarkUpload(b *testing.B) {
	body := make([]byte, 1<<20)
	for _, via := range []path{ownExchange, httpTransport} {
		b.Run(string(via), func(b *testing.B) {
			do := exchange(b, via, "POST", body)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				do()
			}
		})
	}
}
