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

// TestSilentResponseBesideAWholeBody: the bounds of a response's body hold also while a target accepts no more of a body that the
// proxy has as a whole. net/http's transport looks at nothing but the target's window then, over HTTP/2.
func TestSilentResponseBesideAWholeBody(t *testing.T) {
	const length = 300_000 // more than the windows of the target
	for name, o := range map[string]proxy.Options{
		"body":     {BodyTimeout: 10 * time.Second},
		"exchange": {Timeout: 10 * time.Second},
	} {
		for protocol, name2 := range map[upstream.Protocol]string{upstream.HTTP1: "HTTP/1.1", upstream.H2C: "HTTP/2"} {
			t.Run(name+", "+name2, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var protocols http.Protocols
					protocols.SetHTTP1(protocol == upstream.HTTP1)
					protocols.SetUnencryptedHTTP2(protocol == upstream.H2C)
					target := &http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(beginAndReadNoMore),
						HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10}}
					group := groupOf(t, upstream.Options{Protocol: protocol, DialContext: pipeTo(func(c net.Conn) {
						_ = target.Serve(wiretest.OneConn(c))
						time.Sleep(time.Hour) // Serve does not wait for the connection
					})}, upstream.Target{Addr: "192.0.2.1:80", MaxFails: 2, FailTimeout: time.Hour})
					var failure error
					o.Upstream, o.OnError = group, func(_ *http.Request, err *culvert.Error) { failure = err }
					o.RequestBuffer = &proxy.Buffer{Memory: 1 << 20}
					p := newProxy(t, o)
					near, far := net.Pipe()
					s := &http.Server{Handler: p, ErrorLog: wiretest.Quiet()}
					go func() { _ = s.Serve(wiretest.OneConn(far)) }()
					start := time.Now()
					go func() {
						_, _ = io.WriteString(near, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("a", length))
					}()
					resp, err := http.ReadResponse(bufio.NewReader(near), nil)
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
					if e := (*culvert.Error)(nil); !errors.As(failure, &e) || e.Kind != culvert.Timeout || !e.HeaderSent {
						t.Errorf("failure %#v, %v", failure, failure)
					}
					for target := range group.Targets() {
						if target.Fails != 1 {
							t.Errorf("%d failures are counted against the target, want 1", target.Fails)
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

// beginAndReadNoMore responds with the beginning of a response's body, and reads a few bytes of the request's.
func beginAndReadNoMore(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).EnableFullDuplex()
	_, _ = io.ReadFull(r.Body, make([]byte, 5))
	w.Header().Set("Content-Length", "5")
	_, _ = io.WriteString(w, "x")
	_ = http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-time.After(30 * time.Minute):
	}
}
