package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// http2ClientOf returns a client of h over HTTP/2, what it requests, and the number of its connections.
func http2ClientOf(t *testing.T, h http.Handler) (do func(method string, u url.URL, fields http.Header, body string) (*http.Response, string), connections func() int) {
	t.Helper()
	s := h2Server(t, h)
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	made := map[net.Conn]bool{}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { made[info.Conn] = true }})
	do = func(method string, u url.URL, fields http.Header, body string) (*http.Response, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		u.Scheme, u.Host = r.URL.Scheme, r.URL.Host
		*r.URL, r.Header = u, fields
		if fields == nil {
			r.Header = http.Header{}
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("body %q: %v", got, err)
		}
		return resp, string(got)
	}
	return do, func() int { return len(made) }
}

// The trailers of an HTTP/2 target's response with a Content-Length reach a client that speaks HTTP/1.1: in
// chunks. A response without trailers keeps its length, and so does one to HEAD or to HTTP/1.0.
func TestHTTP2ResponseTrailersBesideALength(t *testing.T) {
	onPaths(t, testHTTP2ResponseTrailersBesideALength)
}
func testHTTP2ResponseTrailersBesideALength(t *testing.T, via path) {
	leaktest.Check(t)
	s := h2Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trailers" {
			w.Header().Set("Trailer", "X-Sum")
		}
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("X-Sum", "42")
	}))
	group := groupAt(t, upstream.Options{Scheme: "https", Protocol: upstream.HTTP2, TLSConfig: &tls.Config{InsecureSkipVerify: true}}, s.Listener.Addr().String())
	address := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: group}))
	for request, want := range map[string]struct {
		length int64
		sum    string
	}{
		"GET /trailers HTTP/1.1":  {-1, "42"},
		"GET /none HTTP/1.1":      {5, ""},
		"HEAD /trailers HTTP/1.1": {5, ""},
		"GET /trailers HTTP/1.0":  {5, ""},
	} {
		client := wiretest.Dial(t, address)
		client.Send(request + "\r\nHost: a\r\n\r\n")
		method, _, _ := strings.Cut(request, " ")
		resp, body := client.Response(method)
		if resp.ContentLength != want.length || resp.Trailer.Get("X-Sum") != want.sum || method == "GET" && body != "hello" {
			t.Errorf("%s: %q, length %d, trailers %v, want %v", request, body, resp.ContentLength, resp.Trailer, want)
		}
	}
}

// A stream ends though a trailer that was announced does not come.
func TestHTTP2TrailerThatDoesNotCome(t *testing.T) { onPaths(t, testHTTP2TrailerThatDoesNotCome) }
func testHTTP2TrailerThatDoesNotCome(t *testing.T, via path) {
	for name, end := range map[string]string{"none": "", "another": "X-Late: 1\r\n"} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			target := wiretest.Replying(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\n"+end+"\r\n")
			do, _ := http2ClientOf(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
			resp, body := do("GET", url.URL{Path: "/"}, nil, "")
			late := "X-Late: " + resp.Trailer.Get("X-Late") + "\r\n"
			if body != "hi" || end != "" && late != end || len(resp.Trailer["X-Sum"]) != 0 {
				t.Errorf("body %q, trailer %v", body, resp.Trailer)
			}
		})
	}
}

// The same of an HTTP/2 target, whose trailers also come behind a body of no bytes.
func TestHTTP2Trailers(t *testing.T) { onPaths(t, testHTTP2Trailers) }
func testHTTP2Trailers(t *testing.T, via path) {
	client, address := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Trailer", "X-Sum")
		if r.URL.Path == "/empty" {
			h.Set("Content-Length", "0")
		}
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path != "/none" {
			h.Set("X-Sum", "42")
		}
	}), proxy.Options{})
	for path, want := range map[string]string{"/some": "42", "/none": "", "/empty": "42"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || len(body) > 0 || resp.Trailer.Get("X-Sum") != want {
			t.Errorf("%s: %q %v, trailer %v, want %q", path, body, err, resp.Trailer, want)
		}
		resp.Body.Close()
		cancel()
	}
}

// What one request is refused for does not end the others of its connection.
func TestHTTP2RefusalKeepsConnection(t *testing.T) { onPaths(t, testHTTP2RefusalKeepsConnection) }
func testHTTP2RefusalKeepsConnection(t *testing.T, via path) {
	leaktest.Check(t)
	limit, err := filters.BodyLimit(3)
	if err != nil {
		t.Fatal(err)
	}
	target := wiretest.Replying(t, "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n")
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), RequestBuffer: &proxy.Buffer{Memory: 2}})
	do, connections := http2ClientOf(t, limit(p))
	for _, test := range []struct {
		method string
		url    url.URL
		body   string
		want   int
	}{
		{"POST", url.URL{Path: "/"}, "over the filter's limit", 413},
		{"POST", url.URL{Path: "/"}, "abc", 413}, // the proxy's
		{"GET", url.URL{Path: "/"}, "", 426},
		{"GET", url.URL{Opaque: "*"}, "", 400},
	} {
		resp, _ := do(test.method, test.url, nil, test.body)
		if resp.StatusCode != test.want || resp.ProtoMajor != 2 {
			t.Errorf("%s %v: %s %s, want %d", test.method, test.url, resp.Proto, resp.Status, test.want)
		}
		if resp.Header["Upgrade"] != nil || resp.Header["Connection"] != nil {
			t.Errorf("fields %v", resp.Header)
		}
	}
	if n := connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A client that resets its stream while interim responses come races with none of them.
func TestHTTP2InterimResponsesAndResets(t *testing.T) { onPaths(t, testHTTP2InterimResponsesAndResets) }
func testHTTP2InterimResponsesAndResets(t *testing.T, via path) {
	leaktest.Check(t)
	var fields strings.Builder
	for i := range 100 {
		fmt.Fprintf(&fields, "X-%d: %d\r\n", i, i)
	}
	interim := "HTTP/1.1 103 Early Hints\r\n" + fields.String() + "\r\n"
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			p.Header()
			for range 20 {
				if _, err := io.WriteString(p, interim); err != nil {
					return
				}
			}
			if _, err := io.WriteString(p, "HTTP/1.1 200 OK\r\n"+fields.String()+"Content-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	})
	s := h2Server(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { resetStreams(t, s.Listener.Addr().String(), wiretest.Size(100, 20)) })
	}
	clients.Wait()
}

// resetStreams opens n streams one after the other and resets each when a header section comes.
func resetStreams(t *testing.T, addr string, n int) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Error(err)
		return
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Error(err)
		return
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for i := range n {
		stream := uint32(2*i + 1)
		head.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Error(err)
			return
		}
		for came := false; !came; {
			f, err := framer.ReadFrame()
			if err != nil {
				t.Error(err)
				return
			}
			_, isHead := f.(*http2.HeadersFrame)
			came = isHead && f.Header().StreamID == stream
		}
		if err := framer.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
			t.Error(err)
			return
		}
	}
}

// The trailers of a request with a Content-Length, which HTTP/2 has both, need chunked framing towards a target
// that speaks HTTP/1.1. Without trailers the length is kept.
func TestHTTP2RequestTrailersBesideALength(t *testing.T) {
	onPaths(t, testHTTP2RequestTrailersBesideALength)
}
func testHTTP2RequestTrailersBesideALength(t *testing.T, via path) {
	leaktest.Check(t)
	target, requests := readingTarget(t)
	s := h2Server(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)}))
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	for _, body := range []string{"hello", string(wiretest.Pattern(100 << 10)), ""} {
		for _, want := range []http.Header{{"X-Sum": {"7"}}, nil} {
			if body == "" && want == nil {
				continue
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = want.Clone()
			if body == "" { // of a length that is not known
				r.Method, r.Body, r.ContentLength = "GET", io.NopCloser(strings.NewReader(body)), -1
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			got := wiretest.Await(t, requests, "request")
			if got.err != nil || got.body != body || got.Trailer.Get("X-Sum") != want.Get("X-Sum") {
				t.Errorf("%d bytes of %d, trailers %v, want %v (%v)", len(got.body), len(body), got.Trailer, want, got.err)
			}
			if want == nil && got.ContentLength != int64(len(body)) {
				t.Errorf("length %d, want %d", got.ContentLength, len(body))
			}
		}
	}
}
