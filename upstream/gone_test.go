package upstream_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/upstream"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A write that fails on a connection of HTTP/2 does not delay its other writers, and does not cost the
// response that the target has sent before it closed.
func TestGoneHTTP2Target(t *testing.T) {
	leaktest.Check(t)
	secure := httptest.NewUnstartedServer(nil)
	secure.StartTLS()
	defer secure.Close()
	serving := &tls.Config{Certificates: secure.TLS.Certificates, NextProtos: []string{"h2"}}
	for name, o := range map[string]upstream.Options{
		"h2c": {Protocol: upstream.H2C},
		"h2":  {Protocol: upstream.HTTP2, Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			link := &goneLink{Conn: near, failed: make(chan struct{}, 10)}
			o.DialContext = func(context.Context, string, string) (net.Conn, error) { return link, nil }
			transport, err := upstream.NewTransport(o)
			if err != nil {
				t.Fatal(err)
			}
			defer transport.CloseIdleConnections()
			body, upload := io.Pipe()
			defer upload.Close()
			target := far
			if name == "h2" {
				target = tls.Server(far, serving)
			}
			var served sync.WaitGroup
			defer served.Wait()
			served.Go(func() {
				defer far.Close()
				respondWhileGone(t, target, link, upload)
			})
			scheme := map[string]string{"h2c": "http", "h2": "https"}[name]
			req, err := http.NewRequest("POST", scheme+"://192.0.2.1:80/", body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("the response was lost: %v", err)
			}
			defer resp.Body.Close()
			if content, err := io.ReadAll(resp.Body); err != nil || string(content) != "early" {
				t.Errorf("read %q, %v", content, err)
			}
		})
	}
}

// respondWhileGone reads a request's header and makes writes fail from then on. It responds when a
// write of the body and one of another frame have failed: the transport's response to a PING, which
// would have to wait for the body's write if that were delayed.
func respondWhileGone(t *testing.T, c net.Conn, link *goneLink, upload *io.PipeWriter) {
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Errorf("preface: %v", err)
		return
	}
	f := http2.NewFramer(c, c)
	greeted := make(chan struct{})
	go func() { // the pipe has no buffer, and the transport reads when it has written
		defer close(greeted)
		_ = f.WriteSettings()
	}()
	for settled, requested := false, false; !settled || !requested; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Errorf("request: %v", err)
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			settled = settled || frame.IsAck()
		case *http2.HeadersFrame:
			requested = true
		}
	}
	<-greeted
	link.gone.Store(true)
	_, _ = upload.Write([]byte("x"))
	link.awaitFailure(t)
	_ = f.WritePing(false, [8]byte{1})
	link.awaitFailure(t)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: status200()})
	_ = f.WriteData(1, true, []byte("early"))
}

// status200 returns the header section of a response.
func status200() []byte {
	var b writer
	_ = hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	return b
}

// writer is a buffer.
type writer []byte

// Write appends p.
func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// goneLink is a connection whose peer has closed, and which can still be read.
type goneLink struct {
	net.Conn
	gone   atomic.Bool
	failed chan struct{}
}

// Write fails like that of a socket whose peer has sent a reset.
func (l *goneLink) Write(p []byte) (int, error) {
	if !l.gone.Load() {
		return l.Conn.Write(p)
	}
	l.failed <- struct{}{}
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// awaitFailure waits for a write that fails.
func (l *goneLink) awaitFailure(t *testing.T) {
	select {
	case <-l.failed:
	case <-time.After(5 * time.Second):
		t.Error("no write has failed")
	}
}
