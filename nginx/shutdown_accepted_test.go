package nginx_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// A connection that was accepted in the moment in which its socket is closed is served: after USR2 another process has the same
// socket, and the client has lost nothing there.
func TestAcceptedWhileClosing(t *testing.T) {
	other := wiretest.Free(t)
	for name, closing := range map[string]func(*nginx.Server, *string) error{
		"shutdown": func(s *nginx.Server, _ *string) error { return s.Shutdown(context.Background()) },
		"the address is removed": func(s *nginx.Server, file *string) error {
			*file = "events {} http { server { listen " + other + "; } }"
			return s.Reload()
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			late := &lateListener{Listener: inner, closing: make(chan struct{})}
			file := "events {} http { server { listen " + inner.Addr().String() + "; return 200 served; } }"
			s, err := nginx.New(nginx.Options{
				File: "/nginx.conf", Stderr: discard{}, ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
				Listeners: []net.Listener{late},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			client, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			if err := closing(s, &file); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var body strings.Builder
			if _, err := bufio.NewReader(r.Body).WriteTo(&body); err != nil || body.String() != "served" {
				t.Errorf("%d %q, %v", r.StatusCode, body.String(), err)
			}
		})
	}
}

// lateListener accepts one connection in the moment in which it is closed.
type lateListener struct {
	net.Listener
	closeOnce, acceptOnce sync.Once
	closing               chan struct{}
}

func (l *lateListener) Accept() (conn net.Conn, err error) {
	<-l.closing
	err = net.ErrClosed
	l.acceptOnce.Do(func() {
		conn, err = l.Listener.Accept()
		l.Listener.Close()
	})
	return conn, err
}

func (l *lateListener) Close() error {
	l.closeOnce.Do(func() { close(l.closing) })
	return nil
}
