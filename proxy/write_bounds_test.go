package proxy_test

import (
	"bufio"
	"context"
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
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target that does not accept a request, of which the body is sent in one piece with the header, holds the exchange
// no longer than Timeout. A client that leaves meanwhile is noticed, whether there is a Timeout or not.
func TestTargetThatAcceptsNoRequest(t *testing.T) { onPaths(t, testTargetThatAcceptsNoRequest) }
func testTargetThatAcceptsNoRequest(t *testing.T, via path) {
	for name, test := range map[string]struct {
		timeout, leaves time.Duration // 0: it does not leave
		want            culvert.ErrorKind
	}{
		"Timeout":           {5 * time.Second, 0, culvert.Timeout},
		"the client leaves": {time.Minute, 5 * time.Second, culvert.ClientGone},
		"without Timeout":   {0, 5 * time.Second, culvert.ClientGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var far net.Conn
				group := groupAt(t, upstream.Options{DialContext: func(context.Context, string, string) (near net.Conn, err error) {
					near, far = net.Pipe() // which holds nothing
					return near, nil
				}}, "192.0.2.1:80")
				var seen failures
				p := newProxy(t, via, proxy.Options{Upstream: group, Timeout: test.timeout, OnError: seen.add})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.leaves > 0 {
					time.AfterFunc(test.leaves, cancel)
				}
				r := httptest.NewRequestWithContext(ctx, "PUT", "/", strings.NewReader(strings.Repeat("x", 20_000)))
				start := time.Now()
				func() {
					defer func() { _ = recover() }() // nothing is sent to a client that has left
					p.ServeHTTP(httptest.NewRecorder(), r)
				}()
				if took := time.Since(start); took != 5*time.Second {
					t.Errorf("it took %v", took)
				}
				var e *culvert.Error
				if len(seen.all) != 1 || !errors.As(seen.all[0], &e) || e.Kind != test.want {
					t.Errorf("failures %v, want %v", seen.all, test.want)
				}
				far.Close()
				_ = group.Close()
				synctest.Wait()
			})
		})
	}
}

// A context that ends while a target is silent ends the exchange within ten milliseconds (filters.Timeout), though it is
// watched only when the target has been silent for a moment.
func TestContextThatEndsSoon(t *testing.T) { onPaths(t, testContextThatEndsSoon) }
func testContextThatEndsSoon(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		group := groupAt(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		}}, "192.0.2.1:80")
		p := newProxy(t, via, proxy.Options{Upstream: group})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Nanosecond, cancel)
		start := time.Now()
		func() {
			defer func() { _ = recover() }() // nothing is sent to a client that has left
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		}()
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		_ = group.Close()
		synctest.Wait()
	})
}

// A response without content is written by the server when the handler has returned: a client that does not accept it
// holds its connection no longer than WriteTimeout.
func TestClientThatAcceptsNoHeader(t *testing.T) { onPaths(t, testClientThatAcceptsNoHeader) }
func testClientThatAcceptsNoHeader(t *testing.T, via path) {
	for name, test := range map[string]struct{ method, response string }{
		"of a 204":           {"GET", "HTTP/1.1 204 No Content\r\n\r\n"},
		"of a 304":           {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"},
		"of no length":       {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
		"of a HEAD":          {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"},
		"of a body":          {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
		"behind an interim":  {"GET", "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
		"of a bad response":  {"GET", "nonsense\r\n\r\n"},
		"of refused upgrade": {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go respondOnce(far, test.response)
					return near, nil
				}}, "192.0.2.1:80")
				p := newProxy(t, via, proxy.Options{Upstream: group, WriteTimeout: time.Second})
				near, far := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: p})
				go func() { _ = s.Serve(wiretest.OneConn(far)) }()
				request := test.method
				if !strings.Contains(request, "\n") {
					request += " / HTTP/1.1\r\nHost: a\r\n\r\n"
				}
				if _, err := io.WriteString(near, request); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(test.response, " 103 ") {
					_, _ = io.ReadFull(near, make([]byte, len("HTTP/1.1 103 Early Hints\r\n\r\n")))
				}
				time.Sleep(time.Hour)
				_ = near.SetReadDeadline(time.Now().Add(time.Second))
				if got, err := io.ReadAll(near); err != nil || len(got) > 0 {
					t.Errorf("the connection is still there: %q, %v", got, err)
				}
				near.Close()
				_ = s.Close()
				_ = p.Drain(context.Background())
				_ = group.Close()
				time.Sleep(10 * time.Minute) // the target ends
			})
		})
	}
}

// respondOnce reads a request and writes a response.
func respondOnce(c net.Conn, response string) {
	defer c.Close()
	if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.WriteString(c, response)
	}
}
