package nginx

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// connect makes a connection known, as an http.Server does, and returns it with a
// request on it.
func connect(n *newcomers) (net.Conn, *http.Request) {
	conn, _ := net.Pipe()
	ctx := n.connContext(nil)(context.Background(), conn)
	n.track(conn, http.StateNew)
	return conn, httptest.NewRequest("GET", "/", nil).WithContext(ctx)
}

// waited is how long a shutdown has to wait.
func waited(n *newcomers) time.Duration {
	start := time.Now()
	n.wait(context.Background())
	return time.Since(start)
}

func TestNewcomers(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(n *newcomers, conn net.Conn, r *http.Request)
		want time.Duration
	}{
		{"a request arrives at last", func(n *newcomers, _ net.Conn, r *http.Request) { time.Sleep(time.Second); n.arrived(r) }, time.Second},
		{"it is closed at last", func(n *newcomers, conn net.Conn, _ *http.Request) {
			time.Sleep(time.Second)
			n.track(conn, http.StateClosed)
		}, time.Second},
		{"nothing ever comes", func(*newcomers, net.Conn, *http.Request) {}, newcomerGrace},
		{"a request runs", func(n *newcomers, conn net.Conn, r *http.Request) { n.track(conn, http.StateActive); n.arrived(r) }, 0},
		{"it rests", func(n *newcomers, conn net.Conn, r *http.Request) { n.arrived(r); n.track(conn, http.StateIdle) }, 0},
		{"a tunnel", func(n *newcomers, conn net.Conn, r *http.Request) { n.arrived(r); n.track(conn, http.StateHijacked) }, 0},
		{"the second request was read", func(n *newcomers, conn net.Conn, r *http.Request) {
			n.arrived(r)
			n.track(conn, http.StateIdle)
			n.track(conn, http.StateActive)
		}, newcomerGrace},
		{"two", func(n *newcomers, conn net.Conn, r *http.Request) {
			_, second := connect(n)
			n.arrived(r)
			time.Sleep(2 * time.Second)
			n.arrived(second)
		}, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &newcomers{}
				conn, r := connect(n)
				go test.do(n, conn, r)
				synctest.Wait()
				if got := waited(n); got != test.want {
					t.Errorf("it waits for %v, want %v", got, test.want)
				}
			})
		})
	}
}

// What is known of connections goes with them.
func TestNewcomersForget(t *testing.T) {
	n := &newcomers{}
	for _, state := range []http.ConnState{http.StateClosed, http.StateHijacked} {
		conn, _ := connect(n)
		n.track(conn, state)
	}
	n.conns.Range(func(conn, _ any) bool { t.Errorf("%v is still known", conn); return true })
}
