package proxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// h2Server serves h over HTTP/2 with TLS.
func h2Server(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = wiretest.Quiet()
	s.EnableHTTP2 = true
	wiretest.StartTLS(s)
	t.Cleanup(s.Close)
	return s
}

// overHTTP2 puts a proxy between an HTTP/2 client and an HTTP/2 target and returns
// what sends requests to it.
func overHTTP2(t *testing.T, via path, target http.Handler, o proxy.Options) (client *http.Client, url string) {
	t.Helper()
	leaktest.Check(t)
	s := h2Server(t, target)
	o.Upstream = groupAt(t, upstream.Options{Scheme: "https", Protocol: upstream.HTTP2, TLSConfig: &tls.Config{InsecureSkipVerify: true}}, s.Listener.Addr().String())
	gateway := h2Server(t, newProxy(t, via, o))
	t.Cleanup(gateway.Client().CloseIdleConnections)
	return gateway.Client(), gateway.URL
}

// Both directions flow at the same time, piece by piece, with trailers both ways.
func TestHTTP2FullDuplex(t *testing.T) { onPaths(t, testHTTP2FullDuplex) }
func testHTTP2FullDuplex(t *testing.T, via path) {
	client, url := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		buf := make([]byte, 4)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set("X-Sum", r.Proto+" "+r.Trailer.Get("X-Count"))
	}), proxy.Options{})
	body, send := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Count": nil}
	go func() { _, _ = io.WriteString(send, "ping") }()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 4)
	for i := range 5 {
		if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != "ping" {
			t.Fatalf("piece %d: %q %v", i, buf, err)
		}
		if i < 4 {
			if _, err := io.WriteString(send, "ping"); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Trailer.Set("X-Count", "5")
	send.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("and then %q: %v", rest, err)
	}
	if got := resp.Trailer.Get("X-Sum"); resp.ProtoMajor != 2 || got != "HTTP/2.0 5" {
		t.Errorf("%s, trailer %q", resp.Proto, got)
	}
}

// An event stream arrives event by event.
func TestHTTP2Events(t *testing.T) { onPaths(t, testHTTP2Events) }
func testHTTP2Events(t *testing.T, via path) {
	seen := make(chan struct{})
	client, url := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			wiretest.Await(t, seen, "the client's word")
		}
	}), proxy.Options{})
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 3 {
		event := make([]byte, len("data: 0\n\n"))
		if _, err := io.ReadFull(resp.Body, event); err != nil || string(event) != fmt.Sprintf("data: %d\n\n", i) {
			t.Fatalf("event %q: %v", event, err)
		}
		seen <- struct{}{}
	}
}

// A client's cancellation reaches the target, before the header and after it.
func TestHTTP2ClientCancels(t *testing.T) { onPaths(t, testHTTP2ClientCancels) }
func testHTTP2ClientCancels(t *testing.T, via path) {
	for _, headFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("head first ", headFirst), func(t *testing.T) {
			arrived, ended := make(chan struct{}), make(chan error, 1)
			var failed failures
			client, url := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if headFirst {
					_ = http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-r.Context().Done()
				ended <- r.Context().Err()
			}), proxy.Options{OnError: failed.add})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !headFirst {
				go func() {
					<-arrived
					cancel()
				}()
			}
			if resp, err := client.Do(r); err == nil {
				cancel()
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			wiretest.Await(t, ended, "cancellation at the target")
			failed.await(t)
			if e := failed.only(t); e.Kind != culvert.ClientGone || e.HeaderSent != headFirst {
				t.Errorf("failure %#v", e)
			}
		})
	}
}

// A target that resets its stream is an error for the client, never a whole response.
func TestHTTP2TargetResets(t *testing.T) { onPaths(t, testHTTP2TargetResets) }
func testHTTP2TargetResets(t *testing.T, via path) {
	var failed failures
	client, url := overHTTP2(t, via, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}), proxy.Options{OnError: failed.add})
	resp, err := client.Get(url + "/half")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || string(body) != "half" {
		t.Errorf("read %q, %v", body, err)
	}
	if resp, err = client.Get(url); err != nil || resp.StatusCode != 502 {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	if len(failed.all) != 2 || failed.all[0].Kind != culvert.BodyBroken || failed.all[1].Kind != culvert.HeaderInvalid {
		t.Errorf("failures %v", failed.all)
	}
}

// With retries and buffers switched on, streams stream (traefik#1064) and tunnels end
// as without (traefik#13513).
func TestRetriesHoldNothingBack(t *testing.T) { onPaths(t, testRetriesHoldNothingBack) }
func testRetriesHoldNothingBack(t *testing.T, via path) {
	leaktest.Check(t)
	seen := make(chan struct{})
	stream := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(chunkedHead)
		for range 3 {
			p.Send("5\r\nhello\r\n")
			wiretest.Await(t, seen, "the client's word")
		}
		p.Send("0\r\n\r\n")
	})
	retry := proxy.Retry{Errors: true, Timeouts: true, Statuses: []int{502, 503}}
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, stream, wiretest.Unused(t)), Retry: retry})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Header()
	for range 3 {
		client.Receive("5\r\nhello\r\n")
		seen <- struct{}{}
	}
	client.Receive("0\r\n\r\n")

	tunnel := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		p.Receive("frame")
		p.Reset()
	})
	p = newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, tunnel, wiretest.Unused(t)), Retry: retry})
	client = wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatalf("head %q", head)
	}
	client.Send("frame")
	if rest := client.Ended(); rest != "" {
		t.Errorf("behind the tunnel came %q", rest)
	}
}
