package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// taker is a clientbody.Taker.
type taker func(src *net.TCPConn, n int64) (int64, error)

func (t taker) Take(src *net.TCPConn, n int64) (int64, error) { return t(src, n) }

// A body's move returns a failure of its taker, and leaves one of the client's socket to the next read.
func TestMoveTellsWhoHasFailed(t *testing.T) {
	errTarget := errors.New("the target's")
	half := func(src *net.TCPConn, n int64) (int64, error) { return io.CopyN(io.Discard, src, n/2) }
	for name, test := range map[string]struct {
		take    func(w http.ResponseWriter, c *conn) taker
		isTaker bool
	}{
		"taker": {func(http.ResponseWriter, *conn) taker {
			return func(src *net.TCPConn, n int64) (int64, error) { return 5, errTarget }
		}, true},
		"closed": {func(_ http.ResponseWriter, c *conn) taker {
			return func(src *net.TCPConn, n int64) (int64, error) {
				m, _ := half(src, n)
				c.close()
				_, err := io.CopyN(io.Discard, src, n-m)
				return m, err
			}
		}, false},
		"late": {func(w http.ResponseWriter, _ *conn) taker {
			return func(src *net.TCPConn, n int64) (int64, error) {
				m, _ := half(src, n)
				_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
				_, err := io.CopyN(io.Discard, src, n-m)
				return m, err
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			moved, read := make(chan error, 1), make(chan error, 1)
			c := wiretest.Dial(t, start(t, &Server{ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b := r.Body.(*body)
				_, _ = io.ReadFull(b, make([]byte, 500)) // what was received with the header
				close(begun)
				n, ended, err := b.Move(test.take(w, b.x.c), 1<<20, func() bool { return true })
				if n == 0 || ended {
					t.Errorf("%d bytes were moved, ended: %v", n, ended)
				}
				moved <- err
				_, err = io.Copy(io.Discard, b)
				read <- err
			})}))
			c.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 500))
			wiretest.Await(t, begun, "begin of the body")
			c.Send(strings.Repeat("x", 50_000))
			if err := wiretest.Await(t, moved, "move"); (err != nil) != test.isTaker {
				t.Errorf("moved: %v", err)
			}
			if !test.isTaker {
				if err := wiretest.Await(t, read, "read"); err == nil {
					t.Error("the rest was read")
				}
			}
		})
	}
}

// The bytes that stand before those of the socket are read, and nothing is moved of a body whose end is not known, or which the
// client does not send yet.
func TestMoveLeavesToRead(t *testing.T) {
	const header = "POST / HTTP/1.1\r\nHost: a\r\n"
	for name, request := range map[string]string{
		"chunks":   header + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"buffered": header + "Content-Length: 10\r\n\r\nabc",
		"expected": header + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n",
		"none":     header + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := wiretest.Dial(t, start(t, &Server{ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, ok := r.Body.(*body)
				if !ok {
					return // http.NoBody
				}
				n, _, err := b.Move(nil, 1<<20, func() bool { t.Error("a move begins"); return false })
				if n != 0 || err != nil {
					t.Errorf("moved %d bytes, error %v", n, err)
				}
				w.Header().Set("Connection", "close")
			})}))
			c.Send(request)
			c.Status(200)
		})
	}
}
