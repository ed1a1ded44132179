package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// pipeListener accepts one end of each pipe that is dialled.
type pipeListener struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newPipes() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.ended) }); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial(t *testing.T) *wiretest.Peer {
	client, server := net.Pipe()
	l.conns <- server
	t.Cleanup(func() { client.Close() })
	p := wiretest.NewPeer(t, client)
	_ = client.SetDeadline(time.Time{})
	return p
}

// Shutdown closes idle connections at once, and waits for requests, and for the first one of a new connection. A connection
// without one is closed after 5 seconds.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		proceed := make(chan bool)
		s := handler(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-proceed
			}
		})
		startOn(t, s, func() error { return s.Serve(l) })
		idle, active, fresh, silent := l.dial(t), l.dial(t), l.dial(t), l.dial(t)
		idle.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		idle.Status(http.StatusOK)
		go active.Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		registered := make(chan bool, 1)
		s.RegisterOnShutdown(func() { registered <- true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		<-registered
		if rest := idle.Ended(); rest != "" {
			t.Errorf("rest %q", rest)
		}
		fresh.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, _ := fresh.Response("GET"); resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("response %s, close %v", resp.Status, resp.Close)
		}
		fresh.Ended()
		proceed <- true
		if resp, _ := active.Response("GET"); !resp.Close {
			t.Error("the connection is kept")
		}
		active.Ended()
		if err := s.Shutdown(t.Context()); err != nil || time.Since(begun) != firstRequestWithin {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if rest := silent.Ended(); rest != "" {
			t.Errorf("rest %q", rest)
		}
	})
}

// The times of a server, in virtual time.
func TestTimeouts(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, c := range []struct {
		name   string
		server *Server
		sent   []string // a second between each
		ends   time.Duration
	}{
		{"header", &Server{ReadHeaderTimeout: 5 * time.Second}, []string{get, "A: b\r\n", "C: d\r\n"}, 5 * time.Second},
		{"first byte", &Server{ReadHeaderTimeout: 5 * time.Second}, []string{""}, 5 * time.Second},
		{"second header", &Server{ReadHeaderTimeout: 5 * time.Second}, []string{get + "\r\n", "", "", "G", "E"}, 8 * time.Second},
		{"second header, behind the first", &Server{ReadHeaderTimeout: 5 * time.Second}, []string{get + "\r\n" + "G"}, 5 * time.Second},
		{"idle", &Server{ReadHeaderTimeout: time.Second, IdleTimeout: 7 * time.Second}, []string{get + "\r\n"}, 7 * time.Second},
		{"idle later", &Server{IdleTimeout: 7 * time.Second}, []string{"", "", get + "\r\n"}, 9 * time.Second},
		{"idle by ReadTimeout", &Server{ReadTimeout: 7 * time.Second}, []string{"", "", get + "\r\n"}, 9 * time.Second},
		{"body", &Server{ReadTimeout: 7 * time.Second}, []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", "a", "b"}, 7 * time.Second},
		{"body, without a bound for it", &Server{ReadHeaderTimeout: 2 * time.Second, IdleTimeout: 3 * time.Second}, []string{
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", "h", "e", "l", "l", "o"}, 8 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				s := c.server
				s.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadAll(r.Body)
				})
				startOn(t, s, func() error { return s.Serve(l) })
				p := l.dial(t)
				begun := time.Now()
				go func() {
					for _, piece := range c.sent {
						_, _ = io.WriteString(p.Conn, piece)
						time.Sleep(time.Second)
					}
				}()
				_ = p.Ended()
				if took := time.Since(begun); took != c.ends {
					t.Errorf("ended after %v, want %v", took, c.ends)
				}
			})
		})
	}
}

// WriteTimeout bounds a response from its request's header on.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		failed := make(chan time.Duration, 1)
		s := handler(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			time.Sleep(time.Second)
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					failed <- time.Since(begun)
					return
				}
			}
		})
		s.WriteTimeout = 5 * time.Second
		startOn(t, s, func() error { return s.Serve(l) })
		p := l.dial(t)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if took := <-failed; took != 5*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

// Between requests a connection holds no buffer, and the states are those of net/http.
func TestIdleConnection(t *testing.T) {
	states := make(chan http.ConnState, 10)
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	p := wiretest.Dial(t, start(t, s))
	for range 2 {
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Status(http.StatusOK)
	}
	for _, want := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateActive, http.StateIdle} {
		if state := wiretest.Await(t, states, "state"); state != want {
			t.Errorf("state %v, want %v", state, want)
		}
	}
	s.SetKeepAlivesEnabled(false) // the connection's goroutine ends, and with it all that it has written
	if rest := p.Ended(); rest != "" {
		t.Errorf("rest %q", rest)
	}
	if state := wiretest.Await(t, states, "state"); state != http.StateClosed {
		t.Errorf("state %v", state)
	}
}

// What is not supported is refused by its name.
func TestFieldsThatAreRefused(t *testing.T) {
	s := &Server{TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){"a": nil}}
	if err := s.Serve(newPipes()); err == nil || !strings.Contains(err.Error(), "TLSNextProto") {
		t.Error(err)
	}
	s = &Server{MaxHeaderBytes: -1}
	if err := s.Serve(newPipes()); err == nil || !strings.Contains(err.Error(), "MaxHeaderBytes") {
		t.Error(err)
	}
	s = &Server{TLSConfig: &tls.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}}}
	if err := s.Serve(newPipes()); err == nil || !strings.Contains(err.Error(), "CipherSuites") {
		t.Error(err)
	}
}
