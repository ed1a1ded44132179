package wsupgrade_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// TestPanicOfAConnectionBeforeATunnel: if a connection of a user's Dial panics when the time of a
// handshake or of a response that does not switch is over, or when its client has left, that ends
// its request as a panic of the handler does, and not the program.
func TestPanicOfAConnectionBeforeATunnel(t *testing.T) {
	for name, test := range map[string]struct {
		in, scheme string
		response   string // of the target, which is silent after it
	}{
		"handshake":     {"target SetDeadline", "http", ""},
		"TLS":           {"target Close", "https", ""},
		"not switching": {"target SetDeadline", "http", "HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\npart"},
	} {
		for _, leaves := range []bool{false, true} {
			if test.response != "" && !leaves {
				continue // the time that a body takes is its client's
			}
			t.Run(name+map[bool]string{true: ", the client leaves"}[leaves], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaktest.Check(t)
					b := &bug{in: test.in}
					b.armed.Store(true)
					near, far := wstest.Pipe()
					r := registry(t, wsupgrade.RegistryOptions{Max: 1})
					f := forwarder(t, wsupgrade.Options{Registry: r, Dial: func(context.Context, string, string) (net.Conn, error) {
						return b.target(near), nil
					}})
					closed := make(chan struct{})
					go func() {
						defer close(closed)
						_, _ = io.WriteString(far, test.response)
						_, _ = io.Copy(io.Discard, far)
						_ = far.Close()
					}()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if leaves {
						defer time.AfterFunc(time.Second, cancel).Stop()
					}
					in := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
					in.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
						"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
					out := in.Clone(ctx)
					out.URL.Scheme, out.URL.Host = test.scheme, "target.test"
					func() {
						defer func() {
							if v := recover(); v != "a bug" {
								t.Errorf("the handler panicked with %v", v)
							}
						}()
						_, err := f.Forward(httptest.NewRecorder(), in, out)
						t.Error(err)
					}()
					<-closed
					if err := r.Drain(context.Background(), wsupgrade.GoingAway); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
