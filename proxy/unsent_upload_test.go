package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// scriptedConn is a target's end of a connection of HTTP/2 that responds to each stream with 200.
type scriptedConn struct {
	held   uint32        // the stream that is responded to by release
	last   uint32        // the one behind which nothing is read until resume is closed
	resume chan struct{} // nil: all is read
	writes chan func(*http2.Framer) error

	early    bool        // streams have the header of their response before they have ended, and END_STREAM behind that
	received chan string // what DATA frames have; nil: not needed
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
		switch settings := frame.(type) {
		case *http2.SettingsFrame:
			if !settings.IsAck() {
				s.writes <- (*http2.Framer).WriteSettingsAck
			}
		case *http2.HeadersFrame, *http2.DataFrame:
			s.follow(frame)
			if s.resume != nil && header.StreamID == s.last {
				<-s.resume
			}
		}
	}
}

// follow does what a frame of a stream is followed by.
func (s *scriptedConn) follow(frame http2.Frame) {
	header := frame.Header()
	if data, ok := frame.(*http2.DataFrame); ok && s.received != nil {
		s.received <- string(data.Data())
	}
	ends := header.Flags.Has(http2.FlagDataEndStream)
	switch {
	case header.StreamID == s.held:
	case s.early && header.Type == http2.FrameHeaders:
		s.writes <- func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: header.StreamID, BlockFragment: headerBlock(":status: 200\n"), EndHeaders: true})
		}
	case s.early && ends:
		s.writes <- func(f *http2.Framer) error { return f.WriteData(header.StreamID, true, nil) }
	case ends:
		s.respond(header.StreamID)
	}
}

func (s *scriptedConn) respond(stream uint32) {
	s.writes <- func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
	}
}

// unsentUpload has a connection of HTTP/2 to a target go away while the request of upload, which sends its header and returns, waits for
// its turn to be sent over it. Another connection is served by next; kept says that there is one by then. It returns the
// count of connections. There is another target, to which none are made.
func unsentUpload(t *testing.T, via path, kept bool, next func(net.Conn), o proxy.Options, upload func(*proxy.Proxy)) *atomic.Int32 {
	first := newScriptedConn(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	first.held, first.last, first.resume = 1, 3, make(chan struct{})
	dials := new(atomic.Int32)
	group := groupAt(t, upstream.Options{Protocol: upstream.H2C, Balance: upstream.First(), DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != "192.0.2.1:80" {
			t.Errorf("a connection to %s", addr)
		}
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close() })
		if dials.Add(1) == 1 {
			go first.serve(far)
		} else {
			go next(far)
		}
		return near, nil
	}}, "192.0.2.1:80", "192.0.2.2:80")
	o.Upstream = group
	p := newProxy(t, via, o)
	request := func() <-chan int {
		status := make(chan int, 1)
		go func() {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
			status <- w.Code
		}()
		synctest.Wait()
		return status
	}
	held := request()
	if kept {
		<-request() // makes another connection
	}
	first.writes <- func(f *http2.Framer) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
	}
	synctest.Wait()
	first.respond(1)
	<-held
	<-request()
	halfWritten := request()
	upload(p)
	synctest.Wait()
	first.writes <- func(f *http2.Framer) error { return f.WriteGoAway(5, http2.ErrCodeNo, nil) }
	synctest.Wait()
	close(first.resume)
	if status := <-halfWritten; status != http.StatusOK {
		t.Errorf("status %d before the upload", status)
	}
	synctest.Wait()
	for s := range group.Targets() {
		if !s.Healthy {
			t.Errorf("%s is not healthy", s.Target.Addr)
		}
	}
	return dials
}

// TestUnsentUploadBehindALostConnection: a request with a body that waits for its turn to be sent over a connection of HTTP/2 is sent
// over another one to the same target where that connection can't be used any more, which is a part of its attempt and no failure.
func TestUnsentUploadBehindALostConnection(t *testing.T) {
	onPaths(t, testUnsentUploadBehindALostConnection)
}
func testUnsentUploadBehindALostConnection(t *testing.T, via path) {
	for name, kept := range map[string]bool{"kept": true, "new": false} {
		for body, buffer := range map[string]*proxy.Buffer{"streamed": nil, "whole": {Memory: 10}} {
			t.Run(name+", "+body, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := httptest.NewRequest("POST", "http://gateway.test/", strings.NewReader("hello"))
					ctx, record := filters.WithResult(r.Context())
					status := make(chan int, 1)
					serve := func(c net.Conn) { newScriptedConn().serve(c) }
					conns := unsentUpload(t, via, kept, serve, proxy.Options{RequestBuffer: buffer}, func(p *proxy.Proxy) {
						go func() {
							w := httptest.NewRecorder()
							p.ServeHTTP(w, r.WithContext(ctx))
							status <- w.Code
						}()
					})
					if got := <-status; got != http.StatusOK || conns.Load() != 2 || len(record.Attempts) != 1 || record.Attempts[0].Err != nil {
						t.Errorf("status %d, over %d connections, attempts %+v", got, conns.Load(), record.Attempts)
					}
				})
			})
		}
	}
}

// TestUnsentConversationBehindALostConnection: the target of a request that is sent over another connection gets all of the body, also
// what the client sends behind the response's header.
func TestUnsentConversationBehindALostConnection(t *testing.T) {
	onPaths(t, testUnsentConversationBehindALostConnection)
}
func testUnsentConversationBehindALostConnection(t *testing.T, via path) {
	for name, kept := range map[string]bool{"kept": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := wiretest.Server(&http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b := make([]byte, 10)
					for n, err := 0, error(nil); err == nil; n, err = r.Body.Read(b) {
						_, _ = w.Write(b[:n])
						_ = http.NewResponseController(w).Flush()
					}
				})})
				target.Protocols.SetUnencryptedHTTP2(true)
				t.Cleanup(func() { _ = target.Close() })
				near, far := net.Pipe()
				client := wiretest.NewPeer(t, near)
				unsentUpload(t, via, kept, func(c net.Conn) { _ = target.Serve(wiretest.OneConn(c)) }, proxy.Options{}, func(p *proxy.Proxy) {
					gateway := wiretest.Server(&http.Server{Handler: p})
					t.Cleanup(func() { _ = gateway.Close() })
					go func() { _ = gateway.Serve(wiretest.OneConn(far)) }()
					client.Send("POST / HTTP/1.1\r\nHost: gateway.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
				})
				resp, err := http.ReadResponse(client.R, nil)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					for _, piece := range []string{"a", "b", "c", "d"} {
						client.Send("1\r\n" + piece + "\r\n")
						synctest.Wait()
					}
					client.Send("0\r\n\r\n")
				}()
				if got, err := io.ReadAll(resp.Body); string(got) != "abcd" || err != nil {
					t.Errorf("the response is %q, %v", got, err)
				}
			})
		})
	}
}
