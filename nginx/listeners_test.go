package nginx_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// certify writes a self-signed certificate of a name, and its key, as name.crt and name.key.
func (s *site) certify(name string) {
	s.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		s.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(s.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// serveOwn serves the first listener by NewServer and a net.Listener of the test's. wrap, if not nil, makes the handler.
func (s *site) serveOwn(wrap func(http.Handler) http.Handler) (addr string) {
	s.t.Helper()
	l := s.Listeners()[0]
	server := l.NewServer()
	if wrap != nil {
		server.Handler = wrap(server.Handler)
	}
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if l.TLS != nil {
			_ = server.ServeTLS(bound, "", "")
		} else {
			_ = server.Serve(bound)
		}
	}()
	s.t.Cleanup(func() {
		server.Close()
		<-ended
	})
	return bound.Addr().String()
}

// handshake returns the names of the certificate, and the protocol, that a client gets.
func handshake(t *testing.T, addr string) (name, protocol string, err error) {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: "a", NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	return state.PeerCertificates[0].Subject.CommonName, state.NegotiatedProtocol, nil
}

// The certificates of a program's own server are those of the current configuration, the protocols those that it speaks.
func TestTLSFollowsReload(t *testing.T) {
	s := load(t, "")
	s.certify("old")
	s.certify("new")
	conf := func(name, http2 string) string {
		return "server { listen 127.0.0.1:1 ssl; " + http2 + " ssl_certificate " + name + ".crt; ssl_certificate_key " + name + ".key; return 200 " + name + "; }"
	}
	s.write(conf("old", ""))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	addr := s.serveOwn(nil)
	for _, step := range []struct{ http, name string }{
		{conf("old", ""), "old"},
		{conf("new", ""), "new"},
		{conf("old", "http2 on;"), "old"},
	} {
		s.write(step.http)
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		name, protocol, err := handshake(t, addr)
		if err != nil || name != step.name || protocol != "http/1.1" {
			t.Errorf("%q by %q, %v; want %q", name, protocol, err, step.name)
		}
	}
	s.write("server { listen 127.0.0.1:1; return 200 cleartext; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if name, _, err := handshake(t, addr); err == nil {
		t.Errorf("an address that is no longer configured for TLS has the certificate %q", name)
	}
}

// What the configuration says of connections holds on a program's own server, over reloads: their numbers and those of
// their requests, keepalive_requests, and stub_status, also where another handler of the program takes a connection over.
func TestNewServer(t *testing.T) {
	const locations = "keepalive_requests 4; location /n { return 200 $connection/$connection_requests; } location /status { stub_status; } }"
	s := load(t, "server { listen 127.0.0.1:1; "+locations)
	addr := s.serveOwn(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hijack" {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				conn.Close()
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	first := wiretest.Dial(t, addr)
	expect := func(path, want string) {
		t.Helper()
		first.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, body := first.Response("GET"); body != want {
			t.Errorf("%s: %q, want %q", path, body, want)
		}
	}
	expect("/n", "1/1")
	s.write("server { listen 127.0.0.1:1; " + locations)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	expect("/n", "1/2")
	other := wiretest.Dial(t, addr)
	other.Send("GET /hijack HTTP/1.1\r\nHost: a\r\n\r\n")
	other.Ended()
	expect("/status", "Active connections: 1 \nserver accepts handled requests\n 2 2 3 \nReading: 0 Writing: 1 Waiting: 0 \n")
	first.Send("GET /n HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := first.Response("GET"); body != "1/4" || !resp.Close {
		t.Errorf("the last request of the connection: %q, close %t", body, resp.Close)
	}
	if got := get(t, addr, "/n"); got != "3/1" {
		t.Errorf("got %q", got)
	}
}

// Requests that a program's own server refuses get the pages of the configuration that is current, and are in its log.
func TestNewServerRefuses(t *testing.T) {
	const format = "log_format f '$connection \"$request\" $status $server_name'; access_log access.log f; "
	s := load(t, format+"server { listen 127.0.0.1:1; server_name first; error_page 400 /bad; location /bad { return 200 first; } }")
	addr := s.serveOwn(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the program's handler was called") })
	})
	for _, name := range []string{"first", "second"} {
		if name == "second" {
			s.write(format + "server { listen 127.0.0.1:1; server_name second; error_page 400 /bad; location /bad { return 200 second; } }")
			if err := s.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		c := wiretest.Dial(t, addr)
		c.Send("GET /" + name + " HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n")
		if resp, body := c.Response("GET"); resp.StatusCode != http.StatusBadRequest || body != name {
			t.Errorf("%s: %s, %q", name, resp.Status, body)
		}
		c.End()
		c.Ended()
	}
	log, err := os.ReadFile(filepath.Join(s.dir, "access.log"))
	if want := "1 \"GET /first HTTP/1.1\" 400 first\n2 \"GET /second HTTP/1.1\" 400 second\n"; err != nil || string(log) != want {
		t.Errorf("logged %q, %v", log, err)
	}
}

// A connection's number is not used again behind a reload: the lines of the error log would be mistaken.
func TestConnectionNumbersOverReload(t *testing.T) {
	addr := wiretest.Free(t)
	s := load(t, "server { listen "+addr+"; return 200 $connection; }")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2"} {
		if got := get(t, addr, "/"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

// The handler of a program's own server over HTTP/2: http.ResponseController reaches the connection, responses stream, and what
// runs over a Reload is completed.
func TestHandlerOverHTTP2(t *testing.T) {
	target, requested, release := held(t)
	s := load(t, "")
	s.certify("a")
	const tls = "server { listen 127.0.0.1:1 ssl; http2 on; ssl_certificate a.crt; ssl_certificate_key a.key; "
	s.write(tls + "location / { proxy_pass http://" + target + "; } }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	addr := s.serveOwn(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			if err := c.SetWriteDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			next.ServeHTTP(w, r)
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
		})
	})
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: insecure()}
	defer transport.CloseIdleConnections()
	do := func() (body string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/", nil)
		if err != nil {
			return "", err
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", resp.ProtoMajor)
		}
		content, err := io.ReadAll(resp.Body)
		return string(content), err
	}
	first := make(chan string, 1)
	go func() {
		body, err := do()
		if err != nil {
			t.Error(err)
		}
		first <- body
	}()
	wiretest.Await(t, requested, "the request")
	s.write(tls + "return 200 new; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if body, err := do(); body != "new" || err != nil { // over the same connection
		t.Errorf("got %q, %v", body, err)
	}
	close(release)
	if got := wiretest.Await(t, first, "the first response"); got != "held" {
		t.Errorf("got %q", got)
	}
}

func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// A WebSocket of a program's own server continues over a Reload, and gets a Close frame by Shutdown and Close.
func TestHandlersWebSockets(t *testing.T) {
	for name, end := range map[string]func(s *site) error{
		"Shutdown": func(s *site) error { return s.Shutdown(context.Background()) },
		"Close":    func(s *site) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			upgrader := websocket.Upgrader{}
			app := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := upgrader.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for {
					kind, message, err := conn.ReadMessage()
					if err != nil || conn.WriteMessage(kind, message) != nil {
						return
					}
				}
			}))
			s := load(t, `server { listen 127.0.0.1:1; location / { proxy_pass http://`+app+`; proxy_http_version 1.1;
				proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } location /status { stub_status; } }`)
			addr := s.serveOwn(nil)
			conn, _, err := websocket.DefaultDialer.Dial("ws://"+addr+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for range 2 {
				if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, message, err := conn.ReadMessage(); string(message) != "hello" || err != nil {
					t.Fatalf("got %q, %v", message, err)
				}
				if err := s.Reload(); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- end(s) }()
			if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
				t.Errorf("ended with %v", err)
			}
			if err := wiretest.Await(t, ended, name); err != nil {
				t.Error(err)
			}
		})
	}
}

// A client's certificate is verified by the configuration that serves the request, also on a connection whose
// certificate a former one has accepted, and over cleartext there is none.
func TestClientCertificatesOverReload(t *testing.T) {
	s := load(t, "")
	for _, name := range []string{"server", "old", "new"} {
		s.certify(name)
	}
	conf := func(verify string) {
		t.Helper()
		s.write("server { listen 127.0.0.1:1 ssl; ssl_certificate server.crt; ssl_certificate_key server.key; " + verify + " return 200 $ssl_client_verify; }")
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	conf("ssl_verify_client on; ssl_client_certificate old.crt;")
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "old.crt"), filepath.Join(s.dir, "old.key"))
	if err != nil {
		t.Fatal(err)
	}
	config := insecure()
	config.Certificates = []tls.Certificate{pair}
	conn, err := tls.Dial("tcp", s.serveOwn(nil), config)
	if err != nil {
		t.Fatal(err)
	}
	client := wiretest.NewPeer(t, conn)
	defer client.Close()
	request := func(want int, verified string) {
		t.Helper()
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if resp, body := client.Response("GET"); resp.StatusCode != want || want == http.StatusOK && body != verified {
			t.Errorf("status %d, %q; want %d, %q", resp.StatusCode, body, want, verified)
		}
	}
	request(http.StatusOK, "SUCCESS")
	conf("")
	request(http.StatusOK, "FAILED:not verified")
	conf("ssl_verify_client on; ssl_client_certificate old.crt;")
	request(http.StatusOK, "SUCCESS")
	w := httptest.NewRecorder()
	s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://a/", nil))
	if w.Code != http.StatusBadRequest {
		t.Errorf("over cleartext: %d", w.Code)
	}
	conf("ssl_verify_client on; ssl_client_certificate new.crt;")
	request(http.StatusBadRequest, "")
}
