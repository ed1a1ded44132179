package proxy_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The bounds of HTTP/2 clients are for what they are waited for: a deadline of net/http's streams ends a
// stream also where it waits for the target.
func TestHTTP2TimeoutsAreForTheClient(t *testing.T) { onPaths(t, testHTTP2TimeoutsAreForTheClient) }
func testHTTP2TimeoutsAreForTheClient(t *testing.T, via path) {
	const (
		size  = 8 << 20 // more than what is held between the two
		bound = time.Second
		pause = 3 * bound / 2 // more than a bound and a quarter
	)
	for _, test := range []struct {
		name   string
		o      proxy.Options
		upload int64
		target func(*wiretest.Peer)
		want   string
	}{
		{"a response that pauses", proxy.Options{WriteTimeout: bound}, 0, func(p *wiretest.Peer) {
			p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
			quietFor(p, pause)
			p.Send("2\r\nyo\r\n0\r\n\r\n")
		}, "hiyo"},
		{"one that is flushed late", proxy.Options{WriteTimeout: bound, FlushInterval: time.Millisecond}, 0, func(p *wiretest.Peer) {
			p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
			quietFor(p, pause)
			p.Send("2\r\nyo\r\n0\r\n\r\n")
		}, "hiyo"},
		{"a target that reads late", proxy.Options{ReadTimeout: bound}, size, func(p *wiretest.Peer) {
			time.Sleep(pause) // the target is what is waited for
			_, _ = io.CopyN(io.Discard, p.R, size)
			p.Send(ok)
		}, "ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var failed failures
			test.o.OnError = failed.add
			http2InBubble(t, via, test.o, test.target, func(t *testing.T, client *http.Client, url string) {
				r, err := http.NewRequestWithContext(t.Context(), "POST", url, io.LimitReader(zeros{}, test.upload))
				if err != nil {
					t.Fatal(err)
				}
				if r.ContentLength = test.upload; test.upload == 0 {
					r.Body = nil
				}
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != 200 || string(got) != test.want {
					t.Errorf("the client got a %d, %q, %v; failures %v", resp.StatusCode, got, err, failed.all)
				}
			})
		})
	}
}

// http2InBubble runs visit, in a bubble of testing/synctest, with a client of HTTP/2 of a proxy whose target runs script behind
// each request's header.
func http2InBubble(t *testing.T, via path, o proxy.Options, script func(*wiretest.Peer), visit func(t *testing.T, client *http.Client, url string)) {
	testCertificate()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
		o.Upstream = groupAt(t, upstream.Options{DialContext: pipeTo(func(c net.Conn) {
			target := wiretest.NewPeer(t, c)
			target.Header()
			script(target)
		})}, "192.0.2.1:80")
		client, url := frontInBubble(t, "HTTP/2", newProxy(t, via, o))
		visit(t, client, url)
	})
}

// Where they are waited for, they are given up.
func TestHTTP2SlowClients(t *testing.T) { onPaths(t, testHTTP2SlowClients) }
func testHTTP2SlowClients(t *testing.T, via path) {
	t.Run("download", func(t *testing.T) {
		var failed failures
		http2InBubble(t, via, proxy.Options{WriteTimeout: time.Second, OnError: failed.add}, func(p *wiretest.Peer) {
			p.Send("HTTP/1.1 200 OK\r\n\r\n")
			_, _ = io.Copy(p.Conn, zeros{})
		}, func(t *testing.T, client *http.Client, url string) {
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			failed.await(t)
			if e := failed.only(t); e.Kind != culvert.ClientGone || !e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
		})
	})
	t.Run("upload", func(t *testing.T) {
		var failed failures
		http2InBubble(t, via, proxy.Options{ReadTimeout: time.Second, OnError: failed.add}, func(p *wiretest.Peer) { p.Ended() }, func(t *testing.T, client *http.Client, url string) {
			body, stalled := io.Pipe()
			defer stalled.Close()
			resp, err := client.Post(url, "a/b", body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if e := failed.only(t); e.Kind != culvert.BodyTooSlow || resp.StatusCode != 408 {
				t.Errorf("a %d, failure %#v", resp.StatusCode, e)
			}
		})
	})
}

// A response that has been written whole is sent when the handler has returned: a client that does not accept
// it is given up all the same.
func TestHTTP2ClientThatAcceptsNothing(t *testing.T) { onPaths(t, testHTTP2ClientThatAcceptsNothing) }
func testHTTP2ClientThatAcceptsNothing(t *testing.T, via path) {
	leaktest.Check(t)
	t.Run("of a target", func(t *testing.T) { acceptNothing(t, via, wiretest.Replying(t, ok)) })
	t.Run("of an error", func(t *testing.T) { acceptNothing(t, via, wiretest.Replying(t, "nonsense\r\n\r\n")) })
}

// acceptNothing requests a response of a target and leaves the window of its stream closed.
func acceptNothing(t *testing.T, via path, target string) {
	t.Helper()
	s := h2Server(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), WriteTimeout: soon}))
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header.Bytes(), EndStream: true, EndHeaders: true})
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, reset := f.(*http2.RSTStreamFrame); reset {
			return
		}
	}
}
