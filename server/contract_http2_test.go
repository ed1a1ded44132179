package server_test

//lint:file-ignore SA1019 http.Transport makes no HTTP/2 connection of one that was dialed before; http2.Transport does.

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/wiretest"
)

func testTLS() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// protocols returns a set of "http/1.1", "h2" and "h2c".
func protocols(names ...string) *http.Protocols {
	p := new(http.Protocols)
	for _, name := range names {
		switch name {
		case "http/1.1":
			p.SetHTTP1(true)
		case "h2":
			p.SetHTTP2(true)
		case "h2c":
			p.SetUnencryptedHTTP2(true)
		}
	}
	return p
}

// The protocols of a server are those of Protocols: with nil, HTTP/1 and HTTP/2 over TLS.
func TestContractProtocols(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for _, row := range []struct {
			protocols *http.Protocols
			served    string // of plain, plain h2, TLS, TLS h2
		}{
			{nil, "1-12"}, {protocols("http/1.1"), "1-1-"}, {protocols("h2", "http/1.1"), "1-12"},
			{protocols("http/1.1", "h2c"), "121-"}, {protocols("http/1.1", "h2", "h2c"), "1212"}, {protocols("h2c"), "-2--"},
		} {
			served := ""
			for _, secure := range []bool{false, true} {
				o := &http.Server{Protocols: row.protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprintf(w, "%d", r.ProtoMajor)
				})}
				if secure {
					o.TLSConfig = new(tls.Config)
				}
				_, addr := k.listen(t, o)
				for _, protocol := range []string{"http/1.1", "h2"} {
					served += servedOver(t, addr, secure, protocol)
				}
			}
			if served != row.served {
				t.Errorf("%v: served %s, want %s", row.protocols, served, row.served)
			}
		}
	})
}

// servedOver returns the version that a request over a protocol is served with, "-" if it is not served.
func servedOver(t testing.TB, addr string, secure bool, protocol string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if secure {
		config := testTLS()
		config.NextProtos = []string{protocol}
		secured := tls.Client(conn, config)
		if secured.Handshake() != nil || secured.ConnectionState().NegotiatedProtocol != protocol {
			return "-"
		}
		conn = secured
	}
	var transport http.RoundTripper = &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	if protocol == "h2" {
		h2, err := new(http2.Transport).NewClientConn(conn)
		if err != nil {
			t.Fatal(err)
		}
		defer h2.Close()
		transport = h2
	}
	resp, err := (&http.Client{Transport: transport}).Get("http://" + addr)
	if err != nil || resp.StatusCode != http.StatusOK {
		return "-"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// Over HTTP/2 the request, its context and the writer are as over HTTP/1.
func TestContractHTTP2(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		contexts := make(chan context.Context, 10)
		_, addr := k.listen(t, &http.Server{TLSConfig: new(tls.Config),
			ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, contextKey("conn"), 1)
			},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || s == nil || r.Context().Value(contextKey("conn")) != 1 {
					t.Errorf("server %v, value %v", s, r.Context().Value(contextKey("conn")))
				}
				if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || local.String() == "" || r.TLS == nil || r.RemoteAddr == "" {
					t.Errorf("local %v, TLS %v, remote %q", local, r.TLS, r.RemoteAddr)
				}
				contexts <- r.Context()
				if r.URL.Path == "/abort" {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Trailer", "X-T")
				_, _ = io.Copy(w, r.Body)
				flush(w)
				w.Header().Set("X-T", r.Trailer.Get("X-U"))
			})})
		transport := &http.Transport{TLSClientConfig: testTLS(), Protocols: protocols("h2")}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		for range 2 {
			r, _ := http.NewRequest(http.MethodPost, "https://"+addr, io.MultiReader(strings.NewReader("hello")))
			r.Trailer = http.Header{"X-U": {"1"}}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if resp.ProtoMajor != 2 || string(body) != "hello" || err != nil || resp.Trailer.Get("X-T") != "1" {
				t.Errorf("%s %q %v %v", resp.Proto, body, resp.Trailer, err)
			}
			<-wiretest.Await(t, contexts, "request").Done()
		}
		if resp, err := client.Get("https://" + addr + "/abort"); err == nil {
			resp.Body.Close()
			t.Error("no error of an aborted handler")
		}
		<-wiretest.Await(t, contexts, "request").Done()
	})
}

// Shutdown waits for the requests of HTTP/2 and then closes their connections; Close closes them at once.
func TestContractShutdownHTTP2(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for _, name := range []string{"h2", "h2c"} {
			for _, wait := range []bool{true, false} {
				running, finish, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
				o := &http.Server{Protocols: protocols(name), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(left)
					close(running)
					select {
					case <-finish:
					case <-r.Context().Done():
					}
					_, _ = io.WriteString(w, "whole")
				})}
				if name == "h2" {
					o.TLSConfig = new(tls.Config)
				}
				s, addr := k.listen(t, o)
				response := make(chan string, 1)
				go func() { response <- responseOver(addr, name == "h2") }()
				wiretest.Await(t, running, "request")
				if !wait {
					s.Close()
					if got := wiretest.Await(t, response, "end of the response"); got == "whole" {
						t.Errorf("%s, Close: %q", name, got)
					}
					wiretest.Await(t, left, "end of the handler")
					continue
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if err := s.Shutdown(ctx); err != context.Canceled {
					t.Errorf("%s, Shutdown: %v", name, err)
				}
				close(finish)
				if got := wiretest.Await(t, response, "response"); got != "whole" {
					t.Errorf("%s, Shutdown: %q", name, got)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Errorf("%s, Shutdown: %v", name, err)
				}
			}
		}
	})
}

// responseOver gets / over HTTP/2, and returns the body or the error.
func responseOver(addr string, secure bool) string {
	scheme, transport := "http", &http.Transport{TLSClientConfig: testTLS(), Protocols: protocols("h2c")}
	if secure {
		scheme, transport.Protocols = "https", protocols("h2")
	}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get(scheme + "://" + addr)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// The idle connection of HTTP/2 is closed by IdleTimeout, and by Shutdown.
func TestContractIdleHTTP2(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, shut := range map[string]func(httpServer) error{
			"IdleTimeout": func(httpServer) error { time.Sleep(time.Minute); return nil },
			"Shutdown":    func(s httpServer) error { return s.Shutdown(context.Background()) },
		} {
			l := newMemory()
			s := k.serve(t, &http.Server{IdleTimeout: 10 * time.Second, Protocols: protocols("h2c"), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
			c := l.dialSilent(t)
			h2, err := new(http2.Transport).NewClientConn(c)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequest(http.MethodGet, "http://a", nil)
			resp, err := h2.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if err := shut(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(10 * time.Second)
			if h2.CanTakeNewRequest() {
				t.Errorf("%s: the connection is open", name)
			}
			h2.Close()
		}
	})
}

// A listener of TLS may be given to Serve. Where the client has chosen another protocol than HTTP, no request is served.
func TestContractTLSListener(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{Certificates: testCertificate(), NextProtos: []string{"h2", "http/1.1", "acme-tls/1"}}
		k.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%d", r.ProtoMajor)
		})}, tls.NewListener(l, config))
		for protocol, want := range map[string]string{"http/1.1": "1", "h2": "2", "acme-tls/1": "-"} {
			if got := servedOver(t, l.Addr().String(), true, protocol); got != want {
				t.Errorf("%s: served %s", protocol, got)
			}
		}
	})
}

// A TLS handshake that fails is logged.
func TestContractHandshakeFails(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		log := new(testLog)
		c, _ := k.inBubble(t, &http.Server{TLSConfig: new(tls.Config), ErrorLog: log.logger()})
		_, _ = io.WriteString(c, "\x16\x03\x01\x00\x04\x02\x00\x00\x00")
		if !c.closed() || !strings.Contains(log.String(), "TLS handshake error from 192.0.2.1:1234") {
			t.Errorf("closed: %v, log %q", c.closed(), log)
		}
	})
}

// ConnState is called for connections of HTTP/2, too.
func TestContractConnStateHTTP2(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		var s states
		l := newMemory()
		finish := make(chan struct{})
		k.serve(t, &http.Server{ConnState: s.hook, Protocols: protocols("h2c"), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-finish })}, l)
		h2, err := new(http2.Transport).NewClientConn(l.dialSilent(t))
		if err != nil {
			t.Fatal(err)
		}
		s.want(t, "connected", http.StateNew, http.StateActive, http.StateIdle)
		responses := make(chan error, 1)
		for range 2 {
			go func() {
				r, _ := http.NewRequest(http.MethodGet, "http://a", nil)
				resp, err := h2.RoundTrip(r)
				if err == nil {
					resp.Body.Close()
				}
				responses <- err
			}()
			s.want(t, "a request", http.StateActive)
			finish <- struct{}{}
			if err := <-responses; err != nil {
				t.Error(err)
			}
			s.want(t, "a response", http.StateIdle)
		}
		h2.Close()
		s.want(t, "closed", http.StateClosed)
	})
}
