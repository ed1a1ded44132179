package nginx_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// overQUIC serves a configuration, where ADDR is a free address of UDP and of TCP, and a.test and b.test have certificates.
func overQUIC(t *testing.T, text string) (s *site, addr string) {
	t.Helper()
	leaktest.Check(t)
	s = &site{t: t, dir: t.TempDir()}
	s.certify("a.test")
	s.certify("b.test")
	addr = wiretest.Free(t) // of TCP, and very likely of UDP
	s.writeQUIC(addr, text)
	s.start()
	return s, addr
}

// writeQUIC writes the configuration of overQUIC.
func (s *site) writeQUIC(addr, text string) {
	s.t.Helper()
	s.write("ssl_certificate a.test.crt; ssl_certificate_key a.test.key;\n" + strings.ReplaceAll(text, "ADDR", addr))
}

// overHTTP3 returns a client with a connection of its own to addr, which names sni.
func overHTTP3(t *testing.T, addr, sni string) *http.Client {
	config := insecure()
	config.ServerName = sni
	return withTLS(t, addr, config)
}

func withTLS(t *testing.T, addr string, config *tls.Config) *http.Client {
	transport := &http3.Transport{TLSClientConfig: config, DisableCompression: true,
		Dial: func(ctx context.Context, _ string, config *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, addr, config, q)
		}}
	t.Cleanup(func() { _ = transport.Close() })
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// fetched returns a response and its content.
func fetched(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, string(b)
}

// One address serves HTTP/3 over UDP and the others over TCP, which name it by a field of the file's.
func TestHTTP3(t *testing.T) {
	s, addr := overQUIC(t, `log_format f '$remote_addr $server_addr $server_port "$request" $status $server_protocol $http3 $scheme $ssl_protocol $ssl_server_name $ssl_alpn_protocol $connection_requests';
		access_log access.log f;
		server { listen ADDR quic reuseport; listen ADDR ssl; server_name a.test;
			add_header Alt-Svc 'h3=":$server_port"; ma=86400'; return 200 "a $http3 $host $remote_port"; }
		server { listen ADDR quic; listen ADDR ssl; server_name b.test; ssl_certificate b.test.crt; ssl_certificate_key b.test.key; return 200 b; }`)
	_, port, _ := net.SplitHostPort(addr)
	overTCP := &http.Transport{TLSClientConfig: insecure(), DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	defer overTCP.CloseIdleConnections()
	if resp, _ := fetched(t, &http.Client{Transport: overTCP}, "https://a.test/"); resp.Header.Get("Alt-Svc") != `h3=":`+port+`"; ma=86400` {
		t.Errorf("Alt-Svc %q", resp.Header.Get("Alt-Svc"))
	}
	c := overHTTP3(t, addr, "a.test")
	resp, content := fetched(t, c, "https://a.test/x?y")
	if !strings.HasPrefix(content, "a h3 a.test ") || resp.Proto != "HTTP/3.0" || resp.TLS.PeerCertificates[0].Subject.CommonName != "a.test" {
		t.Errorf("%s %q %s", resp.Proto, content, resp.TLS.PeerCertificates[0].Subject)
	}
	other, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.test/", nil)
	other.Host = "b.test"
	resp, err := c.Do(other)
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := io.ReadAll(resp.Body); string(content) != "b" {
		t.Errorf(":authority b.test: %q", content)
	}
	resp.Body.Close()
	if resp, content := fetched(t, overHTTP3(t, addr, "b.test"), "https://b.test/"); content != "b" || resp.TLS.PeerCertificates[0].Subject.CommonName != "b.test" {
		t.Errorf("SNI b.test: %q %s", content, resp.TLS.PeerCertificates[0].Subject)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "127.0.0.1 127.0.0.1 " + port + ` "GET / HTTP/1.1" 200 HTTP/1.1  https TLSv1.3 a.test - 1
127.0.0.1 127.0.0.1 ` + port + ` "GET /x?y HTTP/3.0" 200 HTTP/3.0 h3 https TLSv1.3 a.test h3 1
127.0.0.1 127.0.0.1 ` + port + ` "GET / HTTP/3.0" 200 HTTP/3.0 h3 https TLSv1.3 a.test h3 2
127.0.0.1 127.0.0.1 ` + port + ` "GET / HTTP/3.0" 200 HTTP/3.0 h3 https TLSv1.3 b.test h3 1
`
	if got := s.logged("access.log"); got != want {
		t.Errorf("logged %s\nwant %s", got, want)
	}
}

// Uploads, streams and trailers go through, each as it is sent.
func TestHTTP3Proxied(t *testing.T) {
	next := make(chan string)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/upload":
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(w, r.ContentLength, n, err)
		case "/stream":
			w.Header().Set("Trailer", "X-Sum")
			for message := range next {
				_, _ = io.WriteString(w, message)
				_ = http.NewResponseController(w).Flush()
			}
			w.Header().Set("X-Sum", "2")
		case "/hints":
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Connection", "close")
			_, _ = fmt.Fprint(w, r.Method, r.RequestURI, r.ContentLength, r.TransferEncoding, r.Header["X-Up"])
		}
	}))
	t.Cleanup(backend.Close)
	_, addr := overQUIC(t, `server { listen ADDR quic; client_max_body_size 10m; proxy_buffering off; proxy_pass_trailers on; proxy_http_version 1.1;
		location / { proxy_pass `+backend.URL+`; proxy_set_header X-Up "$http_upgrade"; proxy_set_header TE trailers; }
		location /streamed { proxy_request_buffering off; proxy_pass `+backend.URL+`/upload; } }`)
	c := overHTTP3(t, addr, "a.test")
	if _, content := fetched(t, c, "https://a.test/a%2Fb?c=%zz"); content != "GET/a%2Fb?c=%zz0 [] []" {
		t.Error(content)
	}
	for path, want := range map[string]string{"/upload": "2097152 2097152 <nil>", "/streamed": "-1 2097152 <nil>"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.test"+path, io.LimitReader(zeros{}, 2<<20))
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != want {
			t.Errorf("%s: %q, want %q", path, b, want)
		}
	}
	if resp, _ := fetched(t, c, "https://a.test/hints"); resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	go func() { next <- "first" }()
	resp, err := c.Get("https://a.test/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"first", "second"} {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		if want == "first" {
			next <- "second"
		}
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil || resp.Trailer.Get("X-Sum") != "2" {
		t.Errorf("the end: %q, %v, trailers %v", rest, err, resp.Trailer)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A server says itself whether HTTP/3 is spoken with it.
func TestHTTP3Off(t *testing.T) {
	_, addr := overQUIC(t, `
		server { listen ADDR quic; server_name a.test; return 200 a; }
		server { listen ADDR quic; server_name b.test; http3 off; return 200 b; }`)
	if resp, _ := fetched(t, overHTTP3(t, addr, "a.test"), "https://b.test/"); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Error(resp.Status)
	}
	const noProtocol = 0x100 + 120 // the alert no_application_protocol (RFC 9001 section 4.8)
	for _, tt := range []struct {
		sni      string
		protocol []string
	}{{"b.test", []string{"h3"}}, {"b.test", nil}, {"a.test", nil}} {
		config := insecure()
		config.ServerName, config.NextProtos = tt.sni, tt.protocol
		c, err := quic.DialAddr(t.Context(), addr, config, nil)
		if err == nil { // crypto/tls has not heard of the server's opinion yet
			wiretest.Await(t, c.Context().Done(), "the refusal")
			err = context.Cause(c.Context())
		}
		if failed := new(quic.TransportError); !errors.As(err, &failed) || failed.ErrorCode != noProtocol || !failed.Remote {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// Certificates of clients are verified as over TCP, for the server that TLS has named.
func TestHTTP3ClientCertificates(t *testing.T) {
	s, addr := overQUIC(t, `server { listen ADDR quic; server_name a.test; ssl_verify_client on; ssl_client_certificate b.test.crt; return 200 "$ssl_client_verify $ssl_client_s_dn"; }
		server { listen ADDR quic; server_name b.test; return 200 open; }`)
	pair := func(name string) (list []tls.Certificate) {
		if name == "" {
			return nil
		}
		c, err := tls.LoadX509KeyPair(filepath.Join(s.dir, name+".crt"), filepath.Join(s.dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{c}
	}
	for _, tt := range []struct {
		certificate, sni, host string
		status                 int
	}{
		{"", "a.test", "a.test", http.StatusBadRequest}, {"a.test", "a.test", "a.test", http.StatusBadRequest},
		{"b.test", "a.test", "a.test", http.StatusOK}, {"", "b.test", "a.test", http.StatusMisdirectedRequest}, {"", "b.test", "b.test", http.StatusOK},
	} {
		config := insecure()
		config.ServerName = tt.sni
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, c := range pair(tt.certificate) {
				return &c, nil
			}
			return &tls.Certificate{}, nil
		}
		if resp, content := fetched(t, withTLS(t, addr, config), "https://"+tt.host+"/"); resp.StatusCode != tt.status || tt.certificate == "b.test" && content != "SUCCESS CN=b.test" {
			t.Errorf("%+v: %s, %q", tt, resp.Status, content)
		}
	}
}

// The limits of the configuration hold over HTTP/3, and the connection is told of its end.
func TestHTTP3Limits(t *testing.T) {
	_, addr := overQUIC(t, `keepalive_requests 2; large_client_header_buffers 2 1k; client_max_body_size 10;
		server { listen ADDR quic; location / { return 200 $connection_requests; } location /up { proxy_pass http://127.0.0.1:1; } }`)
	c := overHTTP3(t, addr, "a.test")
	for _, want := range []string{"1", "2", "1"} {
		if _, got := fetched(t, c, "https://a.test/"); got != want {
			t.Errorf("request %s of the connection, want %s", got, want)
		}
	}
	for n, want := range map[int]int{500: http.StatusOK, 1500: http.StatusBadRequest, 10_000: http.StatusRequestHeaderFieldsTooLarge} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.test/", nil)
		r.Header.Set("X-Long", strings.Repeat("x", n))
		resp, err := overHTTP3(t, addr, "a.test").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: %s", n, resp.Status)
		}
	}
	resp, err := overHTTP3(t, addr, "a.test").Post("https://a.test/up", "", strings.NewReader("more than ten"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.Status)
	}
}

// A reload keeps the socket: requests under way end under the former configuration, and the clients' next ones have the new one.
func TestHTTP3Reload(t *testing.T) {
	backend, requested, release := held(t)
	s, addr := overQUIC(t, "server { listen ADDR quic; location / { return 200 former; } location /held { proxy_pass http://"+backend+"; } }")
	c := overHTTP3(t, addr, "a.test")
	if _, got := fetched(t, c, "https://a.test/"); got != "former" {
		t.Error(got)
	}
	status := make(chan int, 1)
	go func() {
		resp, _ := fetched(t, c, "https://a.test/held")
		status <- resp.StatusCode
	}()
	wiretest.Await(t, requested, "the request")
	s.writeQUIC(addr, "server { listen ADDR quic; return 200 new; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, got := fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/"); got != "new" {
		t.Error(got)
	}
	close(release)
	if got := wiretest.Await(t, status, "the response"); got != http.StatusOK {
		t.Error(got)
	}
	if _, got := fetched(t, c, "https://a.test/"); got != "new" {
		t.Error(got)
	}
	s.writeQUIC(addr, "server { listen ADDR ssl; return 200 tcp; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	udp, err := net.ListenPacket("udp4", addr) // the socket was closed
	if err != nil {
		t.Fatal(err)
	}
	udp.Close()
}

// An address that a reload has removed may come back while its connections end, also when a reload between the two has failed.
func TestHTTP3Back(t *testing.T) {
	backend, requested, release := held(t)
	s, addr := overQUIC(t, "server { listen ADDR quic; location /held { proxy_pass http://"+backend+"; } }")
	c := overHTTP3(t, addr, "a.test")
	status := make(chan int, 1)
	go func() {
		resp, _ := fetched(t, c, "https://a.test/held")
		status <- resp.StatusCode
	}()
	wiretest.Await(t, requested, "the request")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const back = "server { listen ADDR quic; return 200 new; } "
	for _, reload := range []struct {
		text string
		ok   bool
	}{
		{"server { listen ADDR ssl; return 200 tcp; }", true}, {back + "server { listen " + taken.Addr().String() + "; }", false},
		{back, true}, {"server { listen ADDR ssl; return 200 tcp; }", true}, {back, true},
	} {
		s.writeQUIC(addr, reload.text)
		if err := s.Reload(); (err == nil) != reload.ok {
			t.Fatalf("%s: %v", reload.text, err)
		}
	}
	if _, got := fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/"); got != "new" {
		t.Error(got)
	}
	close(release)
	if got := wiretest.Await(t, status, "the response"); got != http.StatusOK {
		t.Error(got)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	udp, err := net.ListenPacket("udp4", addr) // the socket was closed
	if err != nil {
		t.Fatal(err)
	}
	udp.Close()
}

// worker_shutdown_timeout cuts off what does not end.
func TestHTTP3ShutdownTimeout(t *testing.T) {
	backend, requested, release := held(t)
	defer close(release)
	s, addr := overQUIC(t, "server { listen ADDR quic; location / { proxy_pass http://"+backend+"; } }\n}\nworker_shutdown_timeout 50ms;\nstream {")
	failed := make(chan error, 1)
	c := overHTTP3(t, addr, "a.test")
	go func() {
		resp, err := c.Get("https://a.test/held")
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	wiretest.Await(t, requested, "the request")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := wiretest.Await(t, failed, "the failure"); err == nil {
		t.Error("there was a response")
	}
}

// A socket of UDP is handed to another Server. While it has it, the first one serves nothing there.
func TestHTTP3HandOver(t *testing.T) {
	s, addr := overQUIC(t, "server { listen ADDR quic; return 200 first; }")
	_, _ = fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/")
	files, keep, err := s.HandOver()
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	defer files[0].Close()
	packets, err := net.FilePacketConn(files[0])
	if err != nil {
		t.Fatal(err)
	}
	o := nginx.Options{Prefix: s.dir, File: "nginx.conf", Stderr: io.Discard, PacketConns: []net.PacketConn{packets}}
	s.writeQUIC(addr, "server { listen ADDR quic; return 200 second; }")
	other, err := nginx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, got := fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/"); got != "second" {
		t.Error(got)
	}
	other.Close()
	keep()
	if _, got := fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/"); got != "first" {
		t.Error(got)
	}
}

// Sockets of UDP that the configuration does not have are closed.
func TestInheritedPacketConns(t *testing.T) {
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := write(t, "error_log stderr; events {} http { access_log off; server { listen "+wiretest.Free(t)+"; } }")
	o.PacketConns = []net.PacketConn{udp}
	s, err := nginx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := udp.WriteTo(nil, udp.LocalAddr()); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// What goes with quic is checked as nginx does.
func TestHTTP3Errors(t *testing.T) {
	for text, want := range map[string]string{
		"server { listen 443 quic; }":                  `no "ssl_certificate" is defined for the "listen ... quic" directive in`,
		"server { listen 443 quic ssl; }":              `"listen" directive "ssl" parameter is incompatible with "quic" in`,
		"server { listen 443 quic backlog=5; }":        `"listen" directive "backlog" parameter is incompatible with "quic" in`,
		"server { listen 443 quic; listen 443 quic; }": `a duplicate listen 443 in`,
		"http3_hq on;":               `"http3_hq" is not supported by culvert: only HTTP/3 is spoken over QUIC in`,
		"quic_host_key missing.key;": `missing.key" failed (2: No such file or directory) in`,
		"server { listen 443 quic; ssl_protocols TLSv1.2; ssl_certificate a.test.crt; ssl_certificate_key a.test.key; }": `"ssl_protocols" must enable TLSv1.3 for the "listen ... quic" directive in`,
		"server { listen unix:/x quic; }": `QUIC over unix sockets is not supported by culvert in`,
	} {
		s := &site{t: t, dir: t.TempDir()}
		s.certify("a.test")
		s.write(text)
		_, err := nginx.New(nginx.Options{Prefix: s.dir, File: "nginx.conf", Stderr: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The host key's file is read at load, and a reload that changes the key of an address says that it has no effect. http3_hq off is
// nginx's default.
func TestHTTP3HostKey(t *testing.T) {
	s, addr := overQUIC(t, "server { listen ADDR quic; return 200 ok; }")
	if err := os.WriteFile(filepath.Join(s.dir, "host.key"), []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.writeQUIC(addr, "quic_host_key host.key; quic_retry on; http3_hq off; server { listen ADDR quic; return 200 ok; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, got := fetched(t, overHTTP3(t, addr, "a.test"), "https://a.test/"); got != "ok" {
		t.Error(got)
	}
	s.writeQUIC(addr, "server { listen ADDR quic; return 200 ok; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if log := s.logged("error.log"); strings.Count(log, "the quic_host_key of "+addr+" has changed") != 1 {
		t.Error(log)
	}
}

// A client that sends nothing more of its body, or reads nothing of its response, is waited for as long as the file says.
func TestHTTP3Timeouts(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 64<<20))
	}))
	t.Cleanup(backend.Close)
	s, addr := overQUIC(t, `log_format f "$uri $status $remote_addr $realip_remote_addr"; access_log access.log f;
		client_body_timeout 50ms; send_timeout 50ms; set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
		server { listen ADDR quic; location / { proxy_pass `+backend.URL+`; } }`)
	c := overHTTP3(t, addr, "a.test")
	body, end := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.test/body", body)
	r.Header.Set("X-Real-IP", "192.0.2.1")
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	end.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Error(resp.Status)
	}
	if resp, err = c.Get("https://a.test/unread"); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.Shutdown(t.Context()); err != nil { // which the response would hold up
		t.Error(err)
	}
	if got, want := s.logged("access.log"), "/body 408 192.0.2.1 127.0.0.1\n/unread 200 127.0.0.1 127.0.0.1\n"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// Clients resume sessions, also behind a reload, and what they have offered in the handshake is known.
func TestHTTP3Resumption(t *testing.T) {
	const text = `server { listen ADDR quic; server_name a.test; return 200 "$ssl_session_reused $connection $ssl_curve"; add_header X-Offered $ssl_curves always; }`
	s, addr := overQUIC(t, text)
	cache := tls.NewLRUClientSessionCache(1)
	for i, want := range []string{". 1 ", "r 2 "} {
		config := insecure()
		config.ServerName, config.ClientSessionCache = "a.test", cache
		resp, got := fetched(t, withTLS(t, addr, config), "https://a.test/")
		if !strings.HasPrefix(got, want) || resp.Header.Get("X-Offered") == "" {
			t.Errorf("connection %d: %q, %v", i, got, resp.Header)
		}
		s.writeQUIC(addr, text)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}
