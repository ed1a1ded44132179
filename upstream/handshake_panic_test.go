package upstream_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// A panic of a function of TLSConfig leaves no connection open.
func TestPanicInAHandshake(t *testing.T) {
	for name, run := range map[string]func(*upstream.Transport, string) error{
		"the pool": func(transport *upstream.Transport, addr string) error {
			return overPool(transport, httptest.NewRequest(http.MethodGet, "https://"+addr+"/", nil))
		},
		"net/http's transport": func(transport *upstream.Transport, addr string) error {
			_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://"+addr+"/", nil))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = wiretest.Quiet()
			s.StartTLS()
			defer s.Close()
			var open atomic.Int64
			transport, err := upstream.NewTransport(upstream.Options{
				Scheme:    "https",
				TLSConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { panic("a bug") }},
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					open.Add(1)
					return wiretest.Counted(c, &open), err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if v := recover(); v != "a bug" {
						t.Errorf("a panic with %v", v)
					}
				}()
				t.Error(run(transport, s.Listener.Addr().String()))
			}()
			if n := open.Load(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
		})
	}
}
