package upstream_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

// Close closes the connections of exchanges in flight when they end, however long after Close that is.
func TestCloseBesideAnExchange(t *testing.T) {
	certificates := httptest.NewTLSServer(http.NotFoundHandler())
	certificates.Close()
	for name, o := range map[string]upstream.Options{
		"HTTP/1.1": {},
		"h2c":      {Protocol: upstream.H2C},
		"h2":       {Protocol: upstream.HTTP2, Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}},
	} {
		for _, runs := range []time.Duration{0, time.Millisecond, time.Minute} {
			t.Run(name+" "+runs.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					listener := make(pipes)
					s := &http.Server{Protocols: new(http.Protocols), TLSConfig: certificates.TLS.Clone(), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						_ = http.NewResponseController(w).Flush()
						time.Sleep(runs)
					})}
					s.Protocols.SetHTTP1(true)
					s.Protocols.SetHTTP2(true)
					s.Protocols.SetUnencryptedHTTP2(true)
					var open atomic.Int64
					s.ConnState = func(_ net.Conn, to http.ConnState) {
						switch to {
						case http.StateNew:
							open.Add(1)
						case http.StateClosed:
							open.Add(-1)
						}
					}
					if o.Scheme == "" {
						go func() { _ = s.Serve(listener) }()
					} else {
						go func() { _ = s.ServeTLS(listener, "", "") }()
					}
					o.DialContext, o.IdleTimeout, o.PingInterval = listener.dial, time.Hour, -1
					g, err := upstream.New(o, upstream.Target{Addr: "target.test:80"})
					if err != nil {
						t.Fatal(err)
					}
					l, err := g.Pick(t.Context(), request())
					if err != nil {
						t.Fatal(err)
					}
					r, _ := http.NewRequestWithContext(t.Context(), "GET", g.Scheme()+"://"+l.Host()+"/", nil)
					resp, err := g.Transport().RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					g.Close()
					if _, err := io.Copy(io.Discard, resp.Body); err != nil {
						t.Error(err)
					}
					resp.Body.Close()
					l.Done(upstream.Outcome{Status: 200})
					time.Sleep(10 * time.Second)
					if n := open.Load(); n != 0 {
						t.Errorf("%d connections are open", n)
					}
					close(listener)
					s.Close()
				})
			})
		}
	}
}
