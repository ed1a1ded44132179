package http1_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// stalled makes connections over TLS whose target reads a kilobyte and then nothing more, not even the alert by which TLS
// closes. They end behind a minute.
func stalled(t *testing.T, server *tls.Config) func(context.Context, http1.Addr) (net.Conn, error) {
	return func(ctx context.Context, _ http1.Addr) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := io.ReadFull(tls.Server(far, server), make([]byte, 1<<10)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}()
		c := tls.Client(near, &tls.Config{InsecureSkipVerify: true})
		return c, c.HandshakeContext(ctx)
	}
}

// A call that is broken off ends at once, though its target accepts nothing over TLS.
func TestBrokenOffOverTLS(t *testing.T) {
	target := httptest.NewTLSServer(nil)
	target.Close()
	for name, timeout := range map[string]time.Duration{"the context ends": 0, "WriteTimeout": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := http1.NewPool(http1.Options{
					Addr:         func(*http.Request) (http1.Addr, error) { return http1.Addr{}, nil },
					Dial:         stalled(t, target.TLS),
					WriteTimeout: timeout,
					MaxHeader:    1 << 10,
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if timeout == 0 {
					time.AfterFunc(time.Second, cancel)
				}
				const long = 10 << 20
				c := &http1.Call{Request: request(ctx, "POST", io.LimitReader(endless{}, long), long)}
				if err := c.Prepare(); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if _, err := pool.Do(c); err == nil {
					t.Error("no error")
				}
				if took := time.Since(begun); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(2 * time.Minute) // the target's end
			})
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
