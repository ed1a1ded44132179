package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// client returns a client of HTTP/2, over TLS or in the clear.
func client(t *testing.T, secure bool) *http.Client {
	var p http.Protocols
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	transport := &http.Transport{Protocols: &p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// HTTP/2 is served over TLS and in the clear, beside HTTP/1 on the same listener. Shutdown waits for its requests and ends its
// connections, also one that begins while it waits.
func TestHTTP2(t *testing.T) {
	for _, secure := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		began, proceed := make(chan bool, 1), make(chan bool, 1)
		s := handler(func(w http.ResponseWriter, r *http.Request) {
			hs, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
			if r.ProtoMajor == 2 && (hs == nil || hs.WriteTimeout != time.Hour || (r.TLS != nil) != secure) {
				t.Errorf("server %v, TLS %v", hs, r.TLS)
			}
			if r.URL.Path == "/wait" {
				began <- true
				<-proceed
			}
			_, _ = io.WriteString(w, r.Proto)
		})
		s.WriteTimeout = time.Hour
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetHTTP2(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		scheme := "http://"
		if secure {
			scheme = "https://"
			s.TLSConfig = &tls.Config{Certificates: testCertificate()}
			startOn(t, s, func() error { return s.ServeTLS(l, "", "") })
		} else {
			startOn(t, s, func() error { return s.Serve(l) })
			p := wiretest.Dial(t, l.Addr().String())
			p.Send("PRI / HTTP/1.1\r\nHost: a\r\n\r\n") // the preface's beginning
			if _, body := p.Response("GET"); body != "HTTP/1.1" {
				t.Errorf("%q", body)
			}
		}
		c := client(t, secure)
		got := make(chan string, 1)
		fetch := func(path string) {
			resp, err := c.Get(scheme + l.Addr().String() + path)
			if err != nil {
				got <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			got <- string(body)
		}
		fetch("/")
		if proto := <-got; proto != "HTTP/2.0" {
			t.Errorf("%q", proto)
		}
		go fetch("/wait")
		wiretest.Await(t, began, "request")
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		select {
		case err := <-ended:
			t.Errorf("Shutdown has returned: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		proceed <- true
		if proto := wiretest.Await(t, got, "response"); proto != "HTTP/2.0" {
			t.Errorf("%q", proto)
		}
		if err := wiretest.Await(t, ended, "end of Shutdown"); err != nil {
			t.Error(err)
		}
	}
}

// Close ends connections of HTTP/2.
func TestCloseHTTP2(t *testing.T) {
	began := make(chan bool, 1)
	s := handler(func(_ http.ResponseWriter, r *http.Request) {
		began <- true
		<-r.Context().Done()
	})
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
	addr := start(t, s)
	failed := make(chan error, 1)
	c := client(t, false)
	go func() {
		_, err := c.Get("http://" + addr)
		failed <- err
	}()
	wiretest.Await(t, began, "request")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := wiretest.Await(t, failed, "error"); err == nil {
		t.Error("no error")
	}
	p := new(http.Protocols)
	p.SetHTTP2(true)
	s = handler(func(http.ResponseWriter, *http.Request) {})
	s.Protocols = p // no HTTP/1: the connection is closed
	one := wiretest.Dial(t, start(t, s))
	one.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if rest := one.Ended(); rest != "" {
		t.Errorf("rest %q", rest)
	}
}

// A stream's request has the TLS of its connection, whatever the client says of its scheme.
func TestHTTP2TLS(t *testing.T) {
	seen := make(chan *tls.ConnectionState, 1)
	s := handler(func(_ http.ResponseWriter, r *http.Request) { seen <- r.TLS })
	addr := startTLS(t, s)
	for _, scheme := range []string{"https", "http"} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		f := http2.NewFramer(conn, conn)
		if err := f.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		var block writerOf
		e := hpack.NewEncoder(&block)
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", scheme}, {":authority", "a"}, {":path", "/"}} {
			_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		if state := wiretest.Await(t, seen, "request"); state == nil || state.NegotiatedProtocol != "h2" {
			t.Errorf("%s: TLS %+v", scheme, state)
		}
	}
}

// startTLS serves with s over TLS until the test ends.
func startTLS(t *testing.T, s *Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.TLSConfig = &tls.Config{Certificates: testCertificate()}
	startOn(t, s, func() error { return s.ServeTLS(l, "", "") })
	return l.Addr().String()
}
