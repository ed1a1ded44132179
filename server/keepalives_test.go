package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// dialHTTP2 connects in the clear and returns the connection's framer behind the settings.
func dialHTTP2(t *testing.T, addr string) *http2.Framer {
	t.Helper()
	conn := wiretest.Dial(t, addr)
	conn.Send(http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// await reads until it has received a frame of each type, in any order.
func await(t *testing.T, f *http2.Framer, kinds ...http2.FrameType) {
	t.Helper()
	for len(kinds) > 0 {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Errorf("no %v: %v", kinds, err)
			return
		}
		kinds = slices.DeleteFunc(kinds, func(k http2.FrameType) bool { return k == frame.Header().Type })
	}
}

// getStream sends a GET.
func getStream(t *testing.T, f *http2.Framer, id uint32) {
	t.Helper()
	var block writerOf
	e := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
}

type writerOf []byte

func (w *writerOf) Write(p []byte) (int, error) { *w = append(*w, p...); return len(p), nil }

// SetKeepAlivesEnabled ends connections of HTTP/2 with a GOAWAY: those that there are, and those that begin later, with the
// first request that they serve.
func TestSetKeepAlivesEnabledHTTP2(t *testing.T) {
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
	addr := start(t, s)
	before := dialHTTP2(t, addr)
	getStream(t, before, 1)
	await(t, before, http2.FrameHeaders)
	s.SetKeepAlivesEnabled(false)
	await(t, before, http2.FrameGoAway)

	later := dialHTTP2(t, addr)
	getStream(t, later, 1)
	await(t, later, http2.FrameHeaders, http2.FrameGoAway)

	s.SetKeepAlivesEnabled(true)
	kept := dialHTTP2(t, addr)
	for _, id := range []uint32{1, 3} {
		getStream(t, kept, id)
		await(t, kept, http2.FrameHeaders)
	}
}

// stuck is a client's connection of TLS that the server has filled: the alert about its end can't be written.
func stuck(t *testing.T, l *pipeListener, response chan bool) {
	t.Helper()
	client, server := net.Pipe()
	l.conns <- server
	t.Cleanup(func() { client.Close() })
	c := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Error(err)
	}
	<-response
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 OK"))); err != nil {
		t.Error(err)
	}
}

// What closes connections does not wait for a client over TLS that reads nothing, and nor do other connections.
func TestCloseBesideStalledClient(t *testing.T) {
	for name, end := range map[string]func(*Server){
		"Close":                func(s *Server) { _ = s.Close() },
		"SetKeepAlivesEnabled": func(s *Server) { s.SetKeepAlivesEnabled(false) },
		"Shutdown": func(s *Server) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Shutdown(ended)
		},
	} {
		t.Run(name, func(t *testing.T) { // net.Pipe has no buffer, so that each write waits for its reader
			certificates := testCertificate()
			synctest.Test(t, func(t *testing.T) {
				l, response := newPipes(), make(chan bool, 10)
				s := handler(func(http.ResponseWriter, *http.Request) { response <- true })
				s.TLSConfig = &tls.Config{Certificates: certificates}
				startOn(t, s, func() error { return s.ServeTLS(l, "", "") })
				for range 3 {
					stuck(t, l, response)
				}
				begun := time.Now()
				end(s)
				_ = s.ConnStats() // the lock is free
				if took := time.Since(begun); took > 0 {
					t.Errorf("it has taken %v", took)
				}
			})
		})
	}
}
