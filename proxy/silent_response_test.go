package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestSilentResponseBesideAnUpload: the bounds of a response's body apply also while the client is still sending, or has received
// no 100 and sends nothing, or the target accepts no more of a body that the proxy holds as a whole. Over HTTP/2 net/http's
// transport then waits only for that body, or for the target's window.
func TestSilentResponseBesideAnUpload(t *testing.T) { onPaths(t, testSilentResponseBesideAnUpload) }
func testSilentResponseBesideAnUpload(t *testing.T, via path) {
	const unasked = "POST /unasked HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n"
	whole := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("a", 300_000) // more than the target's windows
	buffer := &proxy.Buffer{Memory: 1 << 20}
	for name, test := range map[string]struct {
		o       proxy.Options
		request string
		kind    culvert.ErrorKind
		fails   int
	}{
		"body":              {proxy.Options{BodyTimeout: 10 * time.Second, ReadTimeout: time.Hour}, halfSent, culvert.Timeout, 1},
		"body, unasked":     {proxy.Options{BodyTimeout: 10 * time.Second}, unasked, culvert.Timeout, 1},
		"exchange":          {proxy.Options{Timeout: 10 * time.Second}, halfSent, culvert.BodyTooSlow, 0},
		"exchange, unasked": {proxy.Options{Timeout: 10 * time.Second}, unasked, culvert.Timeout, 1},
		"body, whole":       {proxy.Options{BodyTimeout: 10 * time.Second, RequestBuffer: buffer}, whole, culvert.Timeout, 1},
		"exchange, whole":   {proxy.Options{Timeout: 10 * time.Second, RequestBuffer: buffer}, whole, culvert.Timeout, 1},
	} {
		for protocol, name2 := range map[upstream.Protocol]string{upstream.HTTP1: "HTTP/1.1", upstream.H2C: "HTTP/2"} {
			t.Run(name+", "+name2, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var protocols http.Protocols
					protocols.SetHTTP1(protocol == upstream.HTTP1)
					protocols.SetUnencryptedHTTP2(protocol == upstream.H2C)
					target := wiretest.Server(&http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(beginAndWait),
						HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10}})
					group := groupOf(t, upstream.Options{Protocol: protocol, DialContext: pipeTo(func(c net.Conn) {
						_ = target.Serve(wiretest.OneConn(c))
						time.Sleep(time.Hour) // Serve does not wait for the connection
					})}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 2, FailTimeout: time.Hour})
					var failure error
					o := test.o
					o.Upstream, o.OnError = group, func(_ *http.Request, err *culvert.Error) { failure = err }
					p := newProxy(t, via, o)
					near, far := net.Pipe()
					s := wiretest.Server(&http.Server{Handler: p, ErrorLog: wiretest.Quiet()})
					go func() { _ = s.Serve(wiretest.OneConn(far)) }()
					start := time.Now()
					go func() { _, _ = io.WriteString(near, test.request) }()
					in := bufio.NewReader(near)
					resp, err := http.ReadResponse(in, nil)
					if err == nil && resp.StatusCode == http.StatusEarlyHints {
						resp, err = http.ReadResponse(in, nil)
					}
					if err != nil {
						t.Fatal(err)
					}
					_ = near.SetReadDeadline(start.Add(time.Minute))
					if got, err := io.ReadAll(resp.Body); string(got) != "x" || !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("the client got %q, %v", got, err)
					}
					near.Close()
					_ = s.Close()
					_ = p.Drain(context.Background())
					if took := time.Since(start); took > 15*time.Second {
						t.Errorf("it took %v", took)
					}
					if e := (*culvert.Error)(nil); !errors.As(failure, &e) || e.Kind != test.kind || !e.HeaderSent {
						t.Errorf("failure %#v, %v", failure, failure)
					}
					for target := range group.Targets() {
						if int(target.Fails) != test.fails {
							t.Errorf("%d failures are counted against the target, want %d", target.Fails, test.fails)
						}
					}
					_ = group.Close()
					_ = target.Close()
					time.Sleep(2 * time.Hour) // the connections end
				})
			})
		}
	}
}

// beginAndWait responds with the beginning of a response's body, and with no more.
func beginAndWait(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	if r.URL.Path != "/unasked" { // HTTP/2 takes Expect out of the header
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
	} else {
		w.WriteHeader(http.StatusEarlyHints) // behind which net/http's transport sends the body, in time
	}
	w.Header().Set("Content-Length", "5")
	_, _ = io.WriteString(w, "x")
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-time.After(30 * time.Minute):
	}
}
