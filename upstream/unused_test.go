package upstream_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/upstream"
)

// unusedConns dials a target of HTTP/2. Its first connection accepts one request, to which the target
// never responds, so that another connection is dialled for the next request. The following connections
// end before they carry a request; over further ones the target responds.
type unusedConns struct {
	certificates []tls.Certificate // nil: without TLS
	ends         int32             // how many connections end unused
	dials        atomic.Int32
	proceed      chan struct{} // each but the first dial waits for one
	end          chan struct{} // closed to end the unused connections
	conns        chan net.Conn
}

func newUnusedConns(ends int32, certificates []tls.Certificate) *unusedConns {
	return &unusedConns{certificates: certificates, ends: ends, proceed: make(chan struct{}, 100), end: make(chan struct{}), conns: make(chan net.Conn, 100)}
}

func (u *unusedConns) dial(context.Context, string, string) (net.Conn, error) {
	n := u.dials.Add(1)
	if n > 1 {
		<-u.proceed
	}
	near, far := net.Pipe()
	u.conns <- near
	go u.serve(far, n)
	return near, nil
}

// serve serves the nth connection. It writes on another goroutine than it reads on, since the
// connection has no buffer.
func (u *unusedConns) serve(raw net.Conn, n int32) {
	defer raw.Close()
	c := raw
	if u.certificates != nil {
		c = tls.Server(raw, &tls.Config{Certificates: u.certificates, NextProtos: []string{"h2"}})
	}
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	unused := n > 1 && n <= 1+u.ends
	select {
	case <-u.end:
		if unused {
			return
		}
	default:
	}
	framer := http2.NewFramer(c, c)
	writes := make(chan func() error, 100)
	defer close(writes)
	go func() {
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		for write := range writes {
			_ = write()
		}
	}()
	if unused {
		go func() {
			<-u.end
			raw.Close()
		}()
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		header := frame.Header()
		switch header.Type {
		case http2.FrameSettings:
			if !header.Flags.Has(http2.FlagSettingsAck) {
				writes <- framer.WriteSettingsAck
			}
		case http2.FrameHeaders, http2.FrameData:
			if n > 1 && header.Flags.Has(http2.FlagDataEndStream) {
				ok := http2.HeadersFrameParam{StreamID: header.StreamID, BlockFragment: []byte{0x88}, EndStream: true, EndHeaders: true} // 200
				writes <- func() error { return framer.WriteHeaders(ok) }
			}
		}
	}
}

// No request fails by a connection that its target has ended before it carried a request. net/http's
// transport keeps such a connection for a while, and for ever if the request that would have found its
// end was canceled.
func TestUnusedConnections(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	certificates := secure.TLS.Certificates
	secure.Close()
	for name, o := range map[string]upstream.Options{
		"h2c":         {Protocol: upstream.H2C},
		"h2c, limits": {Protocol: upstream.H2C, MaxConnRequests: 100},
		"h2":          {Protocol: upstream.HTTP2, Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}},
	} {
		for request, body := range map[string]func() io.Reader{
			"GET":  func() io.Reader { return nil },
			"HEAD": func() io.Reader { return nil },
			"POST": func() io.Reader { return strings.NewReader("hello") },
		} {
			for _, ends := range []int32{1, 3} {
				t.Run(name+" "+request, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						target := newUnusedConns(ends, nil)
						if o.Scheme == "https" {
							target.certificates = certificates
						}
						o.DialContext = target.dial
						transport, err := upstream.NewTransport(o)
						if err != nil {
							t.Fatal(err)
						}
						send := func(ctx context.Context, method string, body io.Reader) error {
							scheme := "http"
							if o.Scheme != "" {
								scheme = o.Scheme
							}
							r, err := http.NewRequestWithContext(ctx, method, scheme+"://192.0.2.1:80/", body)
							if err != nil {
								t.Fatal(err)
							}
							resp, err := transport.RoundTrip(r)
							if err == nil {
								resp.Body.Close()
							}
							return err
						}
						ctx, cancel := context.WithCancel(t.Context())
						for range 1 + ends {
							go func() { _ = send(ctx, "GET", nil) }()
							synctest.Wait()
						}
						cancel()
						synctest.Wait()
						// The first connection still counts the stream that was reset, since the target
						// has not responded to a PING.
						for range ends {
							target.proceed <- struct{}{}
							synctest.Wait()
						}
						close(target.end)
						synctest.Wait()
						for range 10 {
							target.proceed <- struct{}{}
						}
						if err := send(t.Context(), request, body()); err != nil {
							t.Errorf("%v, after %d dials", err, target.dials.Load())
						}
						transport.CloseIdleConnections()
						close(target.conns)
						for conn := range target.conns {
							conn.Close()
						}
						time.Sleep(time.Minute)
					})
				})
			}
		}
	}
}

// A request to a target that ends each connection as soon as it is made fails after two dials at most.
func TestEachConnectionEndsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := newUnusedConns(100, nil)
		target.dials.Store(1)
		close(target.proceed)
		close(target.end)
		transport, err := upstream.NewTransport(upstream.Options{Protocol: upstream.H2C, DialContext: target.dial})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://192.0.2.1:80/", nil)
			if err != nil {
				t.Fatal(err)
			}
			before := target.dials.Load()
			resp, err := transport.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			if n := target.dials.Load() - before; err == nil || n > 2 {
				t.Errorf("error %v after %d dials", err, n)
			}
			synctest.Wait()
		}
		transport.CloseIdleConnections()
		time.Sleep(time.Minute)
	})
}
