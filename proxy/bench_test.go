package proxy_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// BenchmarkGET1KiB proxies a GET of 1 KiB over real sockets, by culvert and by
// httputil.ReverseProxy with the same transport settings and a buffer pool. The
// allocations are those of client, proxy and target together; the client here
// makes none, the target two.
func BenchmarkGET1KiB(b *testing.B) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 64)
	target := wiretest.Serve(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/octet-stream"}
		_, _ = w.Write(body)
	}))
	b.Run("culvert", func(b *testing.B) { benchmarkGET(b, gateway(b, ownExchange, target), len(body)) })
	b.Run("httputil", func(b *testing.B) { benchmarkGET(b, wiretest.Serve(b, reverseProxy(b, target)), len(body)) })
}

// reverseProxy is the standard library's proxy, tuned as far as its options go.
func reverseProxy(b *testing.B, target string) http.Handler {
	u := &url.URL{Scheme: "http", Host: target}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 128, ResponseHeaderTimeout: time.Minute}
	b.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport:  transport,
		BufferPool: buffers{},
	}
}

var bufferPool = sync.Pool{New: func() any { return new([32 << 10]byte) }}

type buffers struct{}

func (buffers) Get() []byte  { return bufferPool.Get().(*[32 << 10]byte)[:] }
func (buffers) Put(b []byte) { bufferPool.Put((*[32 << 10]byte)(b)) }

func benchmarkGET(b *testing.B, addr string, size int) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		request := []byte("GET /path?q=1 HTTP/1.1\r\nHost: culvert.test\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
		r := bufio.NewReader(conn)
		for pb.Next() {
			if _, err := conn.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := skipResponse(r, size); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// skipResponse reads one response with a body of the size.
func skipResponse(r *bufio.Reader, size int) error {
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return io.ErrUnexpectedEOF
		}
		if len(line) == 2 {
			_, err := r.Discard(size)
			return err
		}
	}
}

// BenchmarkPick is the handler alone, over a transport that does nothing.
func BenchmarkPick(b *testing.B) {
	for name, balance := range map[string]upstream.Balance{"round_robin": upstream.RoundRobin(), "ip_hash": upstream.IPHash()} {
		b.Run(name, func(b *testing.B) {
			u := groupAt(b, upstream.Options{Balance: balance, Transport: nothing{}}, "a:1", "b:1", "c:1", "d:1")
			p := newProxy(b, ownExchange, proxy.Options{Upstream: u})
			r := &http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
				Header: http.Header{}, Host: "a", RemoteAddr: "192.0.2.7:1234"}
			w := discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				p.ServeHTTP(w, r)
			}
		})
	}
}

type nothing struct{}

func (nothing) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
