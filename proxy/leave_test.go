package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// halfSent is a request with five bytes of its body. The proxy's own exchange would send a small body at once, with the
// header, and net/http's server would read one to its end before it closes a connection.
const (
	rest     = 1_000_000
	halfSent = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000005\r\n\r\naaaaa"
)

// inAnUpload runs test against targets of each protocol, for the group's options and an address for each of the handlers. A
// handler is called when five bytes of the body were read.
func inAnUpload(t *testing.T, handlers []http.HandlerFunc, test func(*testing.T, *upstream.Group)) {
	for name, protocol := range map[string]upstream.Protocol{"HTTP/1.1": upstream.HTTP1, "HTTP/2": upstream.HTTP2} {
		t.Run(name, func(t *testing.T) {
			o := upstream.Options{Balance: upstream.First(), Scheme: "https", Protocol: protocol, TLSConfig: &tls.Config{InsecureSkipVerify: true}}
			var addrs []string
			for _, h := range handlers {
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_ = http.NewResponseController(w).EnableFullDuplex()
					if _, err := io.ReadFull(r.Body, make([]byte, 5)); err != nil {
						t.Error(err)
					}
					h(w, r)
				}))
				s.Config.ErrorLog = wiretest.Quiet()
				s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
				s.EnableHTTP2 = true
				wiretest.StartTLS(s)
				t.Cleanup(s.Close)
				addrs = append(addrs, s.Listener.Addr().String())
			}
			group := groupAt(t, o, addrs...)
			if protocol == upstream.HTTP2 {
				for _, addr := range addrs {
					connect(t, group.Transport(), "https://"+addr)
				}
			}
			test(t, group)
		})
	}
}

// connKey is the context key of a server's connection.
type connKey struct{}

// A request whose response is dropped while its client is still sending goes to the next target at once, and not with the
// client's next bytes.
func TestRetryBesideAHalfSentBody(t *testing.T) { onPathsParallel(t, testRetryBesideAHalfSentBody) }
func testRetryBesideAHalfSentBody(t *testing.T, via path) {
	replayed, sent, whole := make(chan struct{}), make(chan struct{}), make(chan struct{})
	inAnUpload(t, []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		<-sent // or net/http would reset the stream
	}, func(w http.ResponseWriter, r *http.Request) {
		replayed <- struct{}{}
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != strings.Repeat("b", rest) {
			t.Errorf("%d bytes (%v)", len(b), err)
		}
		whole <- struct{}{}
	}}, func(t *testing.T, u *upstream.Group) {
		p := newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true}})
		client := wiretest.Dial(t, wiretest.Serve(t, p))
		client.Send(halfSent)
		wiretest.Await(t, replayed, "beginning at the second target")
		sent <- struct{}{}
		client.Send(strings.Repeat("b", rest))
		wiretest.Await(t, whole, "rest at the second target")
		client.Status(200)
	})
}

// A response that ends while its client is still sending ends for the client, too, and so does one in place of it.
func TestResponseEndsBesideAHalfSentBody(t *testing.T) {
	onPathsParallel(t, testResponseEndsBesideAHalfSentBody)
}
func testResponseEndsBesideAHalfSentBody(t *testing.T, via path) {
	early := []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "x")
	}}
	inAnUpload(t, early, func(t *testing.T, u *upstream.Group) {
		client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: u})))
		client.Send(halfSent)
		client.Header()
		client.Receive("1\r\nx\r\n0\r\n\r\n")
	})
	inAnUpload(t, early, func(t *testing.T, u *upstream.Group) {
		client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: u, ModifyResponse: func(a *proxy.Response) {
			a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		}})))
		client.Send(halfSent)
		client.Status(http.StatusTeapot)
	})
}

// A target that breaks off while its client's next bytes are waited for is noticed at once, and to blame.
func TestTargetBreaksOffBesideAHalfSentBody(t *testing.T) {
	onPathsParallel(t, testTargetBreaksOffBesideAHalfSentBody)
}
func testTargetBreaksOffBesideAHalfSentBody(t *testing.T, via path) {
	for _, test := range []struct {
		name    string
		interim int // responses before
		breaks  http.HandlerFunc
	}{
		{"stream", 0, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"stream, behind an interim response", 1, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			panic(http.ErrAbortHandler)
		}},
		{"connection", 0, func(_ http.ResponseWriter, r *http.Request) { _ = r.Context().Value(connKey{}).(net.Conn).Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inAnUpload(t, []http.HandlerFunc{test.breaks}, func(t *testing.T, u *upstream.Group) {
				if via == httpTransport && strings.HasSuffix(t.Name(), "HTTP/1.1") {
					return // there net/http's transport waits for its read of the body, and the proxy can't stop it
				}
				var failed failures
				client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: u, OnError: failed.add})))
				client.Send(halfSent)
				for range test.interim {
					client.Status(http.StatusEarlyHints)
				}
				client.Status(http.StatusBadGateway)
				if e := failed.only(t); e.Kind != culvert.HeaderInvalid || !e.BytesSent {
					t.Errorf("failure %v, %#v", e, e)
				}
			})
		})
	}
}

// TestLeftStreamEnds: an attempt that is left beside its client's upload ends at its target at once, and not with the client's next bytes:
// another request may have its place there (MaxConns).
func TestLeftStreamEnds(t *testing.T) { onPathsParallel(t, testLeftStreamEnds) }
func testLeftStreamEnds(t *testing.T, via path) {
	left, began := make(chan error, 1), make(chan struct{}, 1)
	inAnUpload(t, []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		_, err := io.Copy(io.Discard, r.Body)
		left <- err
	}, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != strings.Repeat("b", rest) {
			t.Errorf("%d bytes (%v)", len(b), err)
		}
	}}, func(t *testing.T, u *upstream.Group) {
		p := newProxy(t, via, proxy.Options{Upstream: u, Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true}})
		client := wiretest.Dial(t, wiretest.Serve(t, p))
		client.Send(halfSent)
		wiretest.Await(t, began, "beginning at the second target")
		if err := wiretest.Await(t, left, "end at the first target"); err == nil {
			t.Error("the request is whole at the first target")
		}
		client.Send(strings.Repeat("b", rest))
		client.Status(200)
	})
}
