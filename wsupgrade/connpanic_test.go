package wsupgrade_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// bug panics in one method once it is armed.
type bug struct {
	in    string
	armed atomic.Bool
}

func (b *bug) call(method string) {
	if b.armed.Load() && method == b.in {
		panic("a bug")
	}
}

// buggyWriter is a filter's ResponseWriter.
type buggyWriter struct {
	http.ResponseWriter
	*bug
}

func (w buggyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w buggyWriter) Write(p []byte) (int, error) {
	w.call("Write")
	return w.ResponseWriter.Write(p)
}

func (w buggyWriter) FlushError() error {
	w.call("Flush")
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w buggyWriter) SetWriteDeadline(t time.Time) error {
	w.call("SetWriteDeadline")
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

// buggyBody is a filter's request body.
type buggyBody struct {
	io.ReadCloser
	*bug
}

func (b buggyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.call("Read")
	return n, err
}

// target returns c as a connection of a user's Dial.
func (b *bug) target(c net.Conn) net.Conn {
	return wiretest.Hooked{Conn: c, Called: func(method string) { b.call("target " + method) }}
}

// overBuggyStream runs script with a tunnel over HTTP/2 that has the bug, and returns the value
// with which the handler has panicked.
func overBuggyStream(t *testing.T, b *bug, o wsupgrade.Options, handler func(*wsupgrade.Forwarder) http.HandlerFunc, script func(t *testing.T, c *h2Client, id uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer), request ...string) (panicked any) {
	clientConn, serverConn := wstest.Pipe()
	targetConn, targetSide := wstest.Pipe()
	r := registry(t, wsupgrade.RegistryOptions{})
	o.Registry = r
	o.Dial = func(context.Context, string, string) (net.Conn, error) { return b.target(targetSide), nil }
	h, done := handler(forwarder(t, o)), make(chan any, 1)
	s := wiretest.Server(&http.Server{Protocols: new(http.Protocols), ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		defer func() { done <- recover() }()
		in.Body = buggyBody{in.Body, b}
		h(buggyWriter{w, b}, in)
	})})
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(wiretest.OneConn(serverConn)) }()
	c, target := newH2Client(t, clientConn), wiretest.NewPeer(t, targetConn)
	id := c.open(false, request...)
	if len(request) > 2 { // an extended CONNECT
		respondToHandshake(target)
	}
	c.status(id)
	synctest.Wait() // the tunnel is open
	b.armed.Store(true)
	script(t, c, id, r.Get(1), target)
	go func() { _, _ = io.Copy(io.Discard, clientConn) }()
	targetConn.Close()
	time.Sleep(time.Minute)
	select {
	case panicked = <-done:
	default:
		t.Error("the handler has not returned")
	}
	if n := r.Len(); n != 0 {
		t.Errorf("%d tunnels are left", n)
	}
	clientConn.Close()
	_ = s.Close()
	synctest.Wait()
	return panicked
}

// A panic of a filter's ResponseWriter or body, or of a user's connection, ends its tunnel alone,
// on any goroutine. Forward panics with it, as with an Observer's, and the other end of a WebSocket
// receives a Close frame.
func TestPanicOfAConnection(t *testing.T) {
	message := func(c *h2Client, id uint32) { c.check(c.WriteData(id, false, []byte(masked(text, "hello")))) }
	closes := func(t *testing.T, target *wiretest.Peer, code int) {
		wantClose(t, target.R, code, "", true)
		target.Send(frame(closing, string([]byte{byte(code >> 8), byte(code)})))
	}
	for name, test := range map[string]struct {
		in     string
		script func(t *testing.T, c *h2Client, id uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer)
	}{
		"a Close frame": {"Write", func(t *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer) {
			tunnel.Close(wsupgrade.ServiceRestart, "")
			closes(t, target, wsupgrade.ServiceRestart)
		}},
		"a Close frame that is flushed": {"Flush", func(t *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer) {
			tunnel.Close(wsupgrade.ServiceRestart, "")
			closes(t, target, wsupgrade.ServiceRestart)
		}},
		"the time of a Close frame": {"SetWriteDeadline", func(t *testing.T, c *h2Client, id uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer) {
			tunnel.Close(wsupgrade.ServiceRestart, "")
			closes(t, target, wsupgrade.ServiceRestart)
			c.check(c.WriteData(id, true, []byte(masked(closing, "\x03\xf4"))))
		}},
		"a ping": {"Write", func(t *testing.T, _ *h2Client, _ uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			first, payload, _ := nextFrame(t, target.R)
			for first != closing { // it may have been sent a ping as well
				first, payload, _ = nextFrame(t, target.R)
			}
			if payload != "\x03\xf3" {
				t.Errorf("a Close frame %q", payload)
			}
			target.Send(frame(closing, payload))
		}},
		"a message to the client": {"Write", func(t *testing.T, _ *h2Client, _ uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			target.Send(frame(text, "hello"))
			closes(t, target, wsupgrade.InternalError)
		}},
		"a message of the client": {"Read", func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			message(c, id)
			closes(t, target, wsupgrade.InternalError)
		}},
		"a message to the target": {"target Write", func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, _ *wiretest.Peer) {
			message(c, id)
			wantClose(t, strings.NewReader(c.data(id, 4)), wsupgrade.InternalError, "", false)
			c.check(c.WriteData(id, true, []byte(masked(closing, "\x03\xf3"))))
		}},
		"a message of the target": {"target Read", func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			target.Send(frame(text, "hello"))
			wantClose(t, strings.NewReader(c.data(id, 4)), wsupgrade.InternalError, "", false)
			c.check(c.WriteData(id, true, []byte(masked(closing, "\x03\xf3"))))
		}},
		"the end of the client": {"target CloseWrite", func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			c.check(c.WriteData(id, true, nil))
			closes(t, target, wsupgrade.InternalError)
		}},
		"the time of the target's Close frame": {"target SetWriteDeadline", func(t *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, target *wiretest.Peer) {
			tunnel.Close(wsupgrade.ServiceRestart, "")
			closes(t, target, wsupgrade.ServiceRestart)
		}},
		"the time of the target's rest": {"target SetReadDeadline", func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
			c.check(c.WriteData(id, true, nil))
			target.Send(frame(text, "hello"))
		}},
		"the end of all": {"target SetDeadline", func(t *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, _ *wiretest.Peer) {
			tunnel.Abort()
		}},
		"a connection that closes": {"target Close", func(t *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, _ *wiretest.Peer) {
			tunnel.Abort()
		}},
	} {
		for _, observe := range []bool{false, true} {
			for _, detached := range []bool{false, true} {
				t.Run(name+map[bool]string{true: ", observed"}[observe]+map[bool]string{true: ", Start"}[detached], func(t *testing.T) {
					log := logs(t)
					synctest.Test(t, func(t *testing.T) {
						o := wsupgrade.Options{}
						if observe {
							o = observed(wsupgrade.Observer{Message: func(*wsupgrade.Message) error { return nil }})
						}
						if name == "a ping" {
							o.PingInterval = time.Second
						}
						handler := func(f *wsupgrade.Forwarder) http.HandlerFunc {
							return func(w http.ResponseWriter, r *http.Request) {
								if detached {
									_, _ = f.Start(w, r, outboundTo(r, "target.test"), nil)
								} else {
									_, _ = f.Forward(w, r, outboundTo(r, "target.test"))
								}
							}
						}
						got := overBuggyStream(t, &bug{in: test.in}, o, handler, test.script, extendedConnect("/")...)
						if want := map[bool]any{false: "a bug"}[detached]; got != want {
							t.Errorf("the handler panicked with %v, want %v", got, want)
						}
					})
					if got := strings.Count(log.String(), "a bug"); got != map[bool]int{true: 1}[detached] {
						t.Errorf("logged %d times: %s", got, log)
					}
				})
			}
		}
	}
}

// The same for a CONNECT, whose protocol has no Close frame.
func TestPanicOfAConnectionOfConnect(t *testing.T) {
	handler := func(f *wsupgrade.Forwarder) http.HandlerFunc {
		h, err := f.Connect(func(*http.Request) (string, error) { return "target.test:1", nil })
		if err != nil {
			t.Error(err)
		}
		return h.ServeHTTP
	}
	for _, in := range []string{"Read", "Write", "Flush", "target Read", "target Write"} {
		t.Run(in, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := overBuggyStream(t, &bug{in: in}, wsupgrade.Options{}, handler, func(t *testing.T, c *h2Client, id uint32, _ *wsupgrade.Tunnel, target *wiretest.Peer) {
					if in == "Read" || in == "target Write" {
						c.check(c.WriteData(id, false, []byte("x")))
					} else {
						target.Send("x")
					}
					target.Ended()
				}, ":method CONNECT", ":authority target.test:1")
				if got != "a bug" {
					t.Errorf("the handler panicked with %v", got)
				}
			})
		})
	}
}

// After a tunnel over HTTP/2 Start's ended is called on the handler's goroutine, and its panic is
// logged as elsewhere.
func TestPanicBehindAStream(t *testing.T) {
	log := logs(t)
	synctest.Test(t, func(t *testing.T) {
		handler := func(f *wsupgrade.Forwarder) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				_, _ = f.Start(w, r, outboundTo(r, "target.test"), func(*wsupgrade.Tunnel) { panic("a bug") })
			}
		}
		got := overBuggyStream(t, new(bug), wsupgrade.Options{}, handler, func(_ *testing.T, _ *h2Client, _ uint32, tunnel *wsupgrade.Tunnel, _ *wiretest.Peer) {
			tunnel.Abort()
		}, extendedConnect("/")...)
		if got != nil {
			t.Errorf("the handler panicked with %v", got)
		}
	})
	if got := strings.Count(log.String(), "a bug"); got != 1 {
		t.Errorf("logged %d times: %s", got, log)
	}
}
