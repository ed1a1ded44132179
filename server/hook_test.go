package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A panic of a hook is logged and ends its connection, and no other: the process lives, and Shutdown does not wait for it.
func TestPanicOfAHook(t *testing.T) {
	for _, at := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateHijacked, http.StateClosed, -1} {
		t.Run(at.String(), func(t *testing.T) {
			log, failed := new(lines), new(atomic.Bool)
			s := handler(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/hijack" {
					_, _, _ = w.(http.Hijacker).Hijack()
				}
			})
			s.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == at && !failed.Swap(true) {
					panic("a fault")
				}
			}
			if at == -1 {
				s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
					if !failed.Swap(true) {
						panic("a fault")
					}
					return ctx
				}
			}
			s.ErrorLog = newLogger(log)
			addr := start(t, s)
			p := wiretest.Dial(t, addr)
			path := "/"
			if at == http.StateHijacked {
				path = "/hijack"
			}
			_, _ = p.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
			p.Ended()
			p = wiretest.Dial(t, addr)
			p.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			p.Status(http.StatusOK)
			p.Ended()
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if at != http.StateIdle && !strings.Contains(log.String(), "a fault") {
				t.Errorf("log %q", log)
			}
		})
	}
}
