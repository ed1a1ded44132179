package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// unusedConn dials a target of HTTP/2 whose first connection is busy with one request, and whose second one has ended before it
// carried any. Further ones are last.
type unusedConn struct {
	last    *scriptedConn
	dials   atomic.Int32
	proceed chan struct{} // closed when the second dial is to succeed
	end     chan struct{} // closed when its connection is to end
	conns   chan net.Conn
}

func newUnusedConn(last *scriptedConn) *unusedConn {
	return &unusedConn{last: last, proceed: make(chan struct{}), end: make(chan struct{}), conns: make(chan net.Conn, 10)}
}

func (u *unusedConn) dial(context.Context, string, string) (net.Conn, error) {
	n := u.dials.Add(1)
	near, far := net.Pipe()
	u.conns <- near
	switch n {
	case 1:
		busy := newScriptedConn(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		busy.held = 1
		go busy.serve(far)
	case 2:
		<-u.proceed
		go func() { _, _ = io.Copy(io.Discard, far) }()
		go func() {
			<-u.end
			far.Close()
		}()
	default:
		go u.last.serve(far)
	}
	return near, nil
}

// arrange has p, whose target is u, make the first two connections. No request is left.
func (u *unusedConn) arrange(t *testing.T, p http.Handler) {
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		go func() {
			defer func() { _ = recover() }() // http.ErrAbortHandler: the client has gone
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "http://gateway.test/", nil))
		}()
		synctest.Wait()
	}
	cancel()
	synctest.Wait()
	close(u.proceed)
	synctest.Wait()
	close(u.end)
	synctest.Wait()
}

// close ends all connections.
func (u *unusedConn) close() {
	close(u.conns)
	for conn := range u.conns {
		conn.Close()
	}
}

// TestBehindAnUnusedConnection: a connection of HTTP/2 that its target has ended before it carried a request fails none. With a
// transport of the embedder's it does, and as nothing was sent, a request of any method may be sent once more.
func TestBehindAnUnusedConnection(t *testing.T) { onPaths(t, testBehindAnUnusedConnection) }
func testBehindAnUnusedConnection(t *testing.T, via path) {
	for name, test := range map[string]struct {
		body   string
		length int64
		buffer *proxy.Buffer
	}{
		"no body":         {"", 0, nil},
		"of a length":     {"hello", 5, nil},
		"without length":  {"hello", -1, nil},
		"buffered":        {"hello", 5, &proxy.Buffer{Memory: 100}},
		"buffered stream": {"hello", -1, &proxy.Buffer{Memory: 100}},
	} {
		for _, own := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the group's transport %v", name, own), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					last := newScriptedConn()
					last.received = make(chan string, 10)
					target := newUnusedConn(last)
					group := groupOf(t, upstream.Options{Protocol: upstream.H2C, DialContext: target.dial}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 9})
					o := proxy.Options{Upstream: group, RequestBuffer: test.buffer}
					attempts := 1
					if !own {
						attempts = 2
						transport := &http.Transport{DialContext: target.dial, Protocols: new(http.Protocols)}
						transport.Protocols.SetUnencryptedHTTP2(true)
						defer transport.CloseIdleConnections()
						o.Transport = transport
					}
					p := newProxy(t, via, o)
					target.arrange(t, p)
					before := failsOf(group)
					ctx, record := filters.WithResult(t.Context())
					r := httptest.NewRequestWithContext(ctx, "POST", "http://gateway.test/", strings.NewReader(test.body))
					r.ContentLength = test.length
					w := httptest.NewRecorder()
					p.ServeHTTP(w, r)
					close(last.received)
					got := ""
					for data := range last.received {
						got += data
					}
					if w.Code != http.StatusOK || len(record.Attempts) != attempts || got != test.body || failsOf(group)-before != attempts-1 {
						t.Errorf("status %d, body %q, %d failures, attempts %+v", w.Code, got, failsOf(group)-before, record.Attempts)
					}
					_ = group.Close()
					target.close()
				})
			})
		}
	}
}

// An upload continues beside its response also if the transport has closed its body, unread, with a connection that could not be
// used.
func TestReopenedUploadBesideItsResponse(t *testing.T) {
	onPaths(t, testReopenedUploadBesideItsResponse)
}
func testReopenedUploadBesideItsResponse(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		last := newScriptedConn(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5})
		last.early, last.received = true, make(chan string, 10)
		target := newUnusedConn(last)
		group := groupAt(t, upstream.Options{Protocol: upstream.H2C, DialContext: target.dial}, "192.0.2.1:80")
		p := newProxy(t, via, proxy.Options{Upstream: group, FlushInterval: -1})
		target.arrange(t, p)
		client, far := net.Pipe()
		s := wiretest.Server(&http.Server{Handler: p})
		go func() { _ = s.Serve(wiretest.OneConn(far)) }()
		if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("response %v, error %v", resp, err)
		}
		go func() { // of the first piece the transport waits for a window, and none waits for the client
			for _, piece := range []string{"w", "orld"} {
				synctest.Wait()
				_, _ = io.WriteString(client, piece)
			}
		}()
		time.Sleep(time.Second)
		last.writes <- func(f *http2.Framer) error { return f.WriteWindowUpdate(1, 100) }
		_, err = io.ReadAll(resp.Body)
		close(last.received)
		got := ""
		for data := range last.received {
			got += data
		}
		if got != "helloworld" || err != nil {
			t.Errorf("the target got %q, the client %v", got, err)
		}
		client.Close()
		_ = s.Close()
		_ = group.Close()
		target.close()
	})
}
