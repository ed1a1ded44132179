package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// scriptedConn is a target's end of a connection of HTTP/2 that responds to each stream with 200.
type scriptedConn struct {
	held   uint32        // the stream that is responded to by release
	last   uint32        // the one behind which nothing is read until resume is closed
	resume chan struct{} // nil: all is read
	writes chan func(*http2.Framer) error
}

func newScriptedConn(settings ...http2.Setting) *scriptedConn {
	s := &scriptedConn{writes: make(chan func(*http2.Framer) error, 100)}
	s.writes <- func(f *http2.Framer) error { return f.WriteSettings(settings...) }
	return s
}

// serve reads, and writes beside that: the connection has no buffer.
func (s *scriptedConn) serve(c net.Conn) {
	defer c.Close()
	defer close(s.writes)
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(c, c)
	go func() {
		for write := range s.writes {
			_ = write(framer)
		}
	}()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		header := frame.Header()
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				s.writes <- (*http2.Framer).WriteSettingsAck
			}
		case *http2.HeadersFrame, *http2.DataFrame:
			if header.Flags.Has(http2.FlagDataEndStream) && header.StreamID != s.held {
				s.respond(header.StreamID)
			}
			if s.resume != nil && header.StreamID == s.last {
				<-s.resume
			}
		}
	}
}

func (s *scriptedConn) respond(stream uint32) {
	s.writes <- func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
	}
}

// TestUnsentUploadBehindALostConnection: a request with a body that waits for its turn to be sent over a connection of HTTP/2 is sent
// over another one where that connection can't be used any more.
func TestUnsentUploadBehindALostConnection(t *testing.T) {
	for name, kept := range map[string]bool{"kept": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := newScriptedConn(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
				first.held, first.last, first.resume = 1, 3, make(chan struct{})
				var dials atomic.Int32
				conns := make(chan net.Conn, 10)
				group := groupAt(t, upstream.Options{Protocol: upstream.H2C, DialContext: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					conns <- near
					if dials.Add(1) == 1 {
						go first.serve(far)
					} else {
						go newScriptedConn().serve(far)
					}
					return near, nil
				}}, "192.0.2.1:80")
				p := newProxy(t, proxy.Options{Upstream: group})
				request := func(method, body string) <-chan int {
					status := make(chan int, 1)
					go func() {
						w := httptest.NewRecorder()
						p.ServeHTTP(w, httptest.NewRequest(method, "http://gateway.test/", strings.NewReader(body)))
						status <- w.Code
					}()
					synctest.Wait()
					return status
				}
				held := request("GET", "")
				if kept {
					<-request("GET", "") // makes another connection
				}
				first.writes <- func(f *http2.Framer) error {
					return f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
				}
				synctest.Wait()
				first.respond(1)
				<-held
				<-request("GET", "")
				halfWritten := request("GET", "")
				upload := request("POST", "hello")
				first.writes <- func(f *http2.Framer) error { return f.WriteGoAway(5, http2.ErrCodeNo, nil) }
				synctest.Wait()
				close(first.resume)
				if before, status := <-halfWritten, <-upload; before != 200 || status != 200 || dials.Load() != 2 {
					t.Errorf("status %d behind %d, over %d connections", status, before, dials.Load())
				}
				_ = group.Close()
				close(conns)
				for conn := range conns {
					conn.Close()
				}
			})
		})
	}
}
