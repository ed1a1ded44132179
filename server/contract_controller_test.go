package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// The writer has the methods that handlers assert, and those of http.ResponseController.
func TestContractWriterMethods(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, _ *http.Request) {
			if _, ok := w.(interface {
				http.Flusher
				http.Hijacker
				io.ReaderFrom
				io.StringWriter
				FlushError() error
			}); !ok {
				t.Errorf("%T lacks a method", w)
			}
			rc := http.NewResponseController(w)
			for name, err := range map[string]error{"EnableFullDuplex": rc.EnableFullDuplex(), "SetReadDeadline": rc.SetReadDeadline(time.Now().Add(time.Hour)),
				"SetWriteDeadline": rc.SetWriteDeadline(time.Now().Add(time.Hour)), "Flush": rc.Flush()} {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}))
		if received, kept := exchange(t, addr, get); len(received) != 1 || !kept {
			t.Errorf("received %q, kept: %v", received, kept)
		}
	})
}

// A read behind its deadline fails; the response can be sent, and the connection is closed behind it.
func TestContractReadDeadline(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, deadline := range map[string]time.Duration{"past": -time.Second, "soon": time.Second} {
			for _, rest := range []string{"Content-Length: 5\r\n\r\nh", "Transfer-Encoding: chunked\r\n\r\n5\r\nh"} {
				var failure error
				c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadFull(r.Body, make([]byte, 1))
					if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(deadline)); err != nil {
						t.Error(err)
					}
					_, failure = io.Copy(io.Discard, r.Body)
					http.Error(w, "slow", http.StatusRequestTimeout)
				})})
				c.expect(c.send("POST / HTTP/1.1\r\nHost: a\r\n"+rest)+c.after(time.Minute), "HTTP/1.1 408 Request Timeout\r\n")
				if !errors.Is(failure, os.ErrDeadlineExceeded) || !c.closed() {
					t.Errorf("%s: %v, closed: %v", name, failure, c.closed())
				}
			}
		}
	})
}

// A write behind its deadline fails, and the connection is closed.
func TestContractWriteDeadline(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, before := range []string{"", "sent"} {
			l := newMemory()
			var failure error
			k.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				rc := http.NewResponseController(w)
				write(before)(w)
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
				if err := rc.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
					t.Error(err)
				}
				for failure == nil {
					_, failure = w.Write(make([]byte, 10_000))
				}
			})}, l)
			c := l.dialSilent(t)
			_, _ = io.WriteString(c, get)
			time.Sleep(time.Minute)
			synctest.Wait()
			if !errors.Is(failure, os.ErrDeadlineExceeded) {
				t.Errorf("before %q: %v", before, failure)
			}
			got, err := io.ReadAll(c)
			if all := replies(string(got), "GET"); err != nil || len(all) != 1 || !strings.Contains(all[0], "BROKEN") {
				t.Errorf("before %q: received %.200q, %v", before, all, err)
			}
		}
	})
}

// Deadlines that a handler sets end with its request.
func TestContractDeadlinesEnd(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/set" {
				rc := http.NewResponseController(w)
				if err := errors.Join(rc.SetReadDeadline(time.Now().Add(time.Second)), rc.SetWriteDeadline(time.Now().Add(time.Second))); err != nil {
					t.Error(err)
				}
			}
			_, _ = io.Copy(w, r.Body)
		})})
		const rest = " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
		for range 3 {
			c.expect(c.send("POST /set"+rest+"hi"), "HTTP/1.1 200 OK\r\n")
			c.after(time.Minute)
			c.expect(c.send("POST /"+rest+"h"), "")
			c.after(time.Minute)
			if got := c.send("i"); !strings.HasSuffix(got, "hi") {
				t.Errorf("received %q", got)
			}
		}
	})
}

// A deadline can be moved and removed.
func TestContractDeadlineRemoved(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{ReadTimeout: time.Second, WriteTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{})); err != nil {
				t.Error(err)
			}
			body, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %v", body, err)
		})})
		c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
		c.after(time.Hour)
		if got := c.send("hi"); !strings.HasSuffix(got, "hi <nil>") {
			t.Errorf("received %q", got)
		}
	})
}

// hijacking returns a handler that takes the connection and calls take with it.
func hijacking(t *testing.T, take func(conn net.Conn, rw *bufio.ReadWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		take(conn, rw)
	}
}

// A connection that is taken comes with what the server has read of it; nothing is lost or sent twice.
func TestContractHijackEarlyBytes(t *testing.T) {
	upgrade := strings.Replace(get, "\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 1)
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, hijacking(t, func(conn net.Conn, rw *bufio.ReadWriter) {
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			_, _ = io.Copy(conn, rw)
		}))
		for _, early := range []string{"", "e", "early", strings.Repeat("early", 10_000)} {
			p := wiretest.Dial(t, addr)
			go func() {
				p.Send(upgrade + early + "late")
				p.End()
			}()
			if got := p.Rest(); got != "HTTP/1.1 101 Switching Protocols\r\n\r\n"+early+"late" {
				t.Errorf("%d early bytes: received %d", len(early), len(got))
			}
		}
	})
}

// Bytes that arrive while the handler runs, and the server perhaps waits for the client's end, are not lost either.
func TestContractHijackWhileWatched(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, early := range []string{"", "e", "early"} {
			hijack := make(chan struct{})
			c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() { <-r.Context().Done() }()
				<-hijack
				hijacking(t, func(conn net.Conn, rw *bufio.ReadWriter) {
					defer conn.Close()
					_, _ = io.Copy(conn, rw)
				})(w, r)
			})})
			c.expect(c.send(get), "")
			c.expect(c.send(early), "")
			close(hijack)
			if got := c.received(); got != early { // at once: in another protocol nothing may follow
				t.Errorf("received %q, want %q", got, early)
			}
			if got := c.send("late"); got != "late" {
				t.Errorf("received %q behind %q", got, early)
			}
			_ = c.CloseWrite()
			if !c.closed() {
				t.Error("open")
			}
		}
	})
}

// The header that was written before is sent before the connection is taken, and what was written of the body.
func TestContractHijackBehindHeader(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
			hijacking(t, func(conn net.Conn, rw *bufio.ReadWriter) {
				defer conn.Close()
				_, _ = io.Copy(conn, rw)
			})(w, r)
		})})
		got := c.send(get)
		if !strings.HasPrefix(got, "HTTP/1.1 101 Switching Protocols\r\n") || !strings.Contains(got, "\r\nUpgrade: x\r\n") || strings.Count(got, "\r\n\r\n") != 1 ||
			strings.Contains(got, "Content-Length") || strings.Contains(got, "Transfer-Encoding") {
			t.Errorf("received %q", got)
		}
		if got := c.send("hi"); got != "hi" {
			t.Errorf("received %q", got)
		}
	})
}

// The buffers of a taken connection are the handler's: what it writes is sent when it flushes.
func TestContractHijackBuffers(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		flush := make(chan struct{})
		c, _ := k.inBubble(t, &http.Server{Handler: hijacking(t, func(conn net.Conn, rw *bufio.ReadWriter) {
			defer conn.Close()
			if rw.Reader.Size() == 0 || rw.Writer.Available() == 0 {
				t.Error("no buffer")
			}
			_, _ = rw.WriteString("hello")
			<-flush
			if err := rw.Flush(); err != nil {
				t.Error(err)
			}
		})})
		c.expect(c.send(get), "")
		close(flush)
		if got := c.received(); got != "hello" || !c.closed() {
			t.Errorf("received %q, closed: %v", got, c.closed())
		}
	})
}

// A body that was not read can be read from a taken connection.
func TestContractHijackUnreadBody(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: hijacking(t, func(conn net.Conn, rw *bufio.ReadWriter) {
			defer conn.Close()
			_, _ = io.Copy(conn, rw)
		})})
		got := c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
		if got += c.send("rest"); got != "hirest" {
			t.Errorf("received %q", got)
		}
		c.Close()
	})
}

// A taken connection is left alone: by the server's timeouts, when its handler returns or panics, by Shutdown and by
// Close.
func TestContractHijackedConnectionIsLeft(t *testing.T) {
	ways := map[string]func(){"returned": func() {}, "panic": func() { panic(http.ErrAbortHandler) }}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, leave := range ways {
			taken := make(chan net.Conn, 1)
			l := newMemory()
			h := hijacking(t, func(conn net.Conn, _ *bufio.ReadWriter) { taken <- conn; leave() })
			s := k.serve(t, &http.Server{Handler: h, ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Second}, l)
			c := l.dial(t)
			c.send(get)
			conn := <-taken
			c.after(time.Minute)
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			s.Close()
			if _, err := io.WriteString(conn, "hello"); err != nil {
				t.Errorf("%s: write: %v", name, err)
			}
			if got := c.received(); got != "hello" || c.closed() {
				t.Errorf("%s: received %q, closed: %v", name, got, c.closed())
			}
			c.send("hi")
			buf := make([]byte, 2)
			if _, err := io.ReadFull(conn, buf); err != nil || string(buf) != "hi" {
				t.Errorf("%s: read %q, %v", name, buf, err)
			}
			conn.Close()
		}
	})
}

// Behind Hijack the writer fails with http.ErrHijacked.
func TestContractWriterBehindHijack(t *testing.T) {
	log := new(testLog)
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{ErrorLog: log.logger(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hijacking(t, func(conn net.Conn, _ *bufio.ReadWriter) { conn.Close() })(w, r)
			if _, _, err := http.NewResponseController(w).Hijack(); err != http.ErrHijacked {
				t.Errorf("Hijack: %v", err)
			}
			refused(t, w, "hello", http.ErrHijacked)
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-A", "1")
		})})
		c.expect(c.send(get), "")
		if !c.closed() || !strings.Contains(log.String(), "hijacked") {
			t.Errorf("closed: %v, log %q", c.closed(), log)
		}
	})
}

// A Hijack behind a response that is not whole does not have the server end it.
func TestContractHijackBehindBody(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			write("hello")(w)
			flush(w)
			hijacking(t, func(conn net.Conn, _ *bufio.ReadWriter) {
				defer conn.Close()
				_, _ = io.WriteString(conn, "-taken")
			})(w, r)
		})})
		if got := c.send(get); !strings.HasSuffix(got, "\r\n\r\nhello-taken") || !c.closed() {
			t.Errorf("received %q, closed: %v", got, c.closed())
		}
	})
}
