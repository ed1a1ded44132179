package engine_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// http2Server speaks HTTP/2 alone, by prior knowledge or with TLS.
func http2Server(t *testing.T, secure bool) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Date", "never")
		w.Header().Set("X-Seen", fmt.Sprintf("%s %s %s te=%s a=%s up=%s %s", r.Proto, r.Method, r.RequestURI, r.Header.Get("Te"), r.Header.Get("X-A"), r.Header.Get("Upgrade"), body))
		w.Header().Set("X-Host", r.Host)
		if r.URL.Path == "/busy" {
			w.WriteHeader(503)
		}
		io.WriteString(w, "body")
		w.(http.Flusher).Flush() // so that trailers can follow over HTTP/1.1
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP2(secure)
	s.Config.Protocols.SetUnencryptedHTTP2(!secure)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func TestHTTP2ToUpstreams(t *testing.T) {
	plain, secure := http2Server(t, false), http2Server(t, true)
	addrs := strings.NewReplacer("PLAIN", plain.Listener.Addr().String(), "SECURE", secure.Listener.Addr().String())
	s := serve(t, map[string]string{"nginx.conf": addrs.Replace(`events {} http {
		upstream both { server PLAIN; server PLAIN; }
		server {
			location /grpc { grpc_pass grpc://PLAIN; grpc_set_header X-A b; }
			location /bare { grpc_pass PLAIN; }
			location /tls { grpc_pass grpcs://SECURE; }
			location /busy { grpc_pass both; grpc_next_upstream http_503; add_header X-Up $upstream_status always; }
			location /taken { grpc_pass grpc://PLAIN; grpc_intercept_errors on; error_page 503 =200 /page; rewrite ^ /busy break; }
			location = /page { return 200 page; }
			location /proxy { proxy_pass http://PLAIN; proxy_http_version 2; proxy_pass_trailers on; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
			location /proxytls { proxy_pass https://SECURE/x; proxy_http_version 2; proxy_pass_trailers on; }
		} }`)})
	for path, want := range map[string]string{
		"/grpc?a%20b": "HTTP/2.0 POST /grpc?a%20b te=trailers a=b up= hello",
		"/bare//x":    "HTTP/2.0 POST /bare//x te=trailers a= up= hello",
		"/tls":        "HTTP/2.0 POST /tls te=trailers a= up= hello",
		"/proxy":      "HTTP/2.0 POST /proxy te=trailers a= up= hello",
		"/proxytls":   "HTTP/2.0 POST /x te=trailers a= up= hello",
	} {
		got := s.send("POST " + path + " HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\nContent-Length: 5\r\n\r\nhello")
		if got.StatusCode != 200 || got.Header.Get("X-Seen") != want || got.body != "body" || got.Header.Get("Date") == "never" {
			t.Errorf("%s: status %d, header %v, body %q", path, got.StatusCode, got.Header, got.body)
		}
		if got.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%s: trailer %v", path, got.Trailer)
		}
	}
	if got := s.get("/grpc"); got.Header.Get("X-Host") != plain.Listener.Addr().String() {
		t.Errorf("the authority is %q", got.Header.Get("X-Host"))
	}
	p := wiretest.Dial(t, s.first) // names of HTTP/2 reach the client as they are there
	p.Send("GET /grpc HTTP/1.1\r\nHost: h\r\n\r\n")
	if got := p.Header(); !strings.Contains(got, "\r\nx-host: ") || !strings.Contains(got, "\r\nContent-Type: ") {
		t.Errorf("names: %q", got)
	}
	if got := s.get("/busy"); got.Header.Get("X-Up") != "503, 503" {
		t.Errorf("the statuses are %q", got.Header.Get("X-Up"))
	}
	if got := s.get("/taken"); got.body != "page" {
		t.Errorf("instead of the error: %q", got.body)
	}
	if got := s.get("/proxy", "Connection: Upgrade", "Upgrade: x"); got.Header.Get("X-Seen") != "HTTP/2.0 GET /proxy te= a= up=" {
		t.Errorf("an upgrade: %v", got.Header)
	}
}

// Requests over HTTP/2 share a connection to a server of an upstream block, and have their own where there is none.
func TestConnectionsOfHTTP2(t *testing.T) {
	var opened atomic.Int32
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	target.Config.Protocols = new(http.Protocols)
	target.Config.Protocols.SetUnencryptedHTTP2(true)
	target.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	target.Start()
	t.Cleanup(target.Close)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		upstream block { server TARGET; }
		proxy_http_version 2;
		server {
			location /block { proxy_pass http://block; }
			location /proxy { proxy_pass http://TARGET; }
			location /variable { proxy_pass http://$http_to; }
			location /grpc { grpc_pass TARGET; }
		} }`, "TARGET", target.Listener.Addr().String())})
	for _, tt := range []struct {
		path string
		want int32
	}{{"/block", 1}, {"/proxy", 3}, {"/variable", 3}, {"/grpc", 3}} {
		opened.Store(0)
		for range 3 {
			if got := s.get(tt.path, "To: "+target.Listener.Addr().String()); got.StatusCode != 200 {
				t.Fatalf("%s: status %d", tt.path, got.StatusCode)
			}
		}
		if n := opened.Load(); n != tt.want {
			t.Errorf("%s: %d connections, want %d", tt.path, n, tt.want)
		}
	}
}

// An upstream that opens the window of a stream beyond 2^31-1 bytes fails that request only (RFC 9113 section 6.9.1).
func TestWindowOverflowOfHTTP2(t *testing.T) {
	var requests atomic.Int32
	upstream := wiretest.Target(t, func(p *wiretest.Peer) {
		_, _ = io.ReadFull(p.R, make([]byte, len(http2.ClientPreface)))
		f := http2.NewFramer(p, p.R)
		for err := f.WriteSettings(); err == nil; {
			var frame http2.Frame
			if frame, err = f.ReadFrame(); err != nil || frame.Header().Type != http2.FrameHeaders {
				continue
			}
			stream := frame.Header().StreamID
			if requests.Add(1) > 1 {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true, EndStream: true}) // 200
				continue
			}
			_ = f.WriteWindowUpdate(stream, 1<<31-1)
			err = f.WriteWindowUpdate(stream, 1<<31-1)
		}
	})
	s := serve(t, map[string]string{"nginx.conf": `events {} http { upstream u { server ` + upstream + ` max_fails=0; keepalive 4; }
		server { location / { grpc_pass grpc://u; } } }`})
	for i, want := range []int{502, 200, 200} {
		if got := s.get("/"); got.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, got.StatusCode, want)
		}
	}
}
