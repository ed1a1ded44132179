package wsupgrade_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// echo is a gorilla server with subprotocols and compression.
func echo(t testing.TB) http.Handler {
	upgrader := websocket.Upgrader{
		Subprotocols:      []string{"echo.v2", "echo.v1"},
		EnableCompression: true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, http.Header{"X-Path": {r.URL.RequestURI()}})
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil {
				return // ReadMessage responds to the Close frame
			}
			if err := conn.WriteMessage(kind, message); err != nil {
				return
			}
		}
	})
}

// talk sends and receives messages and closes the WebSocket cleanly.
func talk(t *testing.T, url string, config *tls.Config) {
	t.Helper()
	dialer := websocket.Dialer{
		Subprotocols:      []string{"echo.v1", "other"},
		EnableCompression: true,
		TLSClientConfig:   config,
		HandshakeTimeout:  time.Minute,
	}
	conn, resp, err := dialer.Dial(url+"/echo/a%2Fb?q=%7e", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if conn.Subprotocol() != "echo.v1" || resp.Header.Get("X-Path") != "/echo/a%2Fb?q=%7e" {
		t.Errorf("subprotocol %q, path %q", conn.Subprotocol(), resp.Header.Get("X-Path"))
	}
	if !strings.HasPrefix(resp.Header.Get("Sec-Websocket-Extensions"), "permessage-deflate") {
		t.Errorf("extensions %q", resp.Header["Sec-Websocket-Extensions"])
	}
	for _, want := range []string{"", "hello", strings.Repeat("long ", 20_000), string(wiretest.Pattern(300_000))} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(want)); err != nil {
			t.Fatal(err)
		}
		kind, got, err := conn.ReadMessage()
		if err != nil || kind != websocket.BinaryMessage {
			t.Fatalf("message of kind %d: %v", kind, err)
		}
		wiretest.SameBytes(t, "message", got, []byte(want))
	}
	bye := websocket.FormatCloseMessage(4321, "bye")
	if err := conn.WriteMessage(websocket.CloseMessage, bye); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, 4321) {
		t.Errorf("end: %v, want close 4321", err)
	}
}

// mounted is the Handler on a mux, beside plain pages.
func mounted(t *testing.T, o wsupgrade.Options, target *url.URL) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /echo/{path...}", forwarder(t, o).Handler(target))
	mux.HandleFunc("/", http.NotFound)
	return mux
}

func TestGorillaThroughServeMux(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.NewServer(echo(t))
	defer target.Close()
	front := wiretest.NewServer(mounted(t, wsupgrade.Options{}, parse(t, target.URL)))
	defer front.Close()
	talk(t, "ws"+strings.TrimPrefix(front.URL, "http"), nil)
}

// TLS on both legs; the target's port and name are its certificate's.
func TestGorillaOverTLS(t *testing.T) {
	leaktest.Check(t)
	var seen tls.ConnectionState
	inner := echo(t)
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = *r.TLS
		inner.ServeHTTP(w, r)
	}))
	target.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}} // h2 must not be negotiated
	wiretest.StartTLS(target)
	defer target.Close()
	roots := x509.NewCertPool()
	roots.AddCert(target.Certificate())
	wss := "wss" + strings.TrimPrefix(target.URL, "https")

	for name, test := range map[string]struct {
		config *tls.Config
		sni    string
	}{
		"the target's address": {&tls.Config{RootCAs: roots}, ""},
		"the TLSConfig's name": {&tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2"}}, "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			front := wiretest.NewTLSServer(mounted(t, wsupgrade.Options{TLSConfig: test.config}, parse(t, wss)))
			defer front.Close()
			talk(t, "wss"+strings.TrimPrefix(front.URL, "https"), &tls.Config{RootCAs: roots})
			if seen.ServerName != test.sni || seen.NegotiatedProtocol != "http/1.1" {
				t.Errorf("the target saw the name %q and %q", seen.ServerName, seen.NegotiatedProtocol)
			}
		})
	}
}

// A certificate that is not the target's is a dial failure: nothing was written.
func TestForeignCertificate(t *testing.T) {
	leaktest.Check(t)
	target := httptest.NewUnstartedServer(echo(t))
	target.Config.ErrorLog = wiretest.Quiet()
	wiretest.StartTLS(target)
	defer target.Close()
	f := forwarder(t, wsupgrade.Options{})
	p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := outboundTo(r, target.Listener.Addr().String())
		out.URL.Scheme = "https"
		_, err := f.Forward(w, r, out)
		if e := asError(err); e == nil || e.BytesSent || e.ClientSide() {
			t.Errorf("Forward: %v", err)
		}
		wsupgrade.Refuse(w, asError(err))
	})))
	p.Send(handshake)
	p.Status(502)
}

// HTTP/2 has no upgrade; a request for one is refused.
func TestHTTP2IsRefused(t *testing.T) {
	leaktest.Check(t)
	front := httptest.NewUnstartedServer(forwarder(t, wsupgrade.Options{}).Handler(parse(t, "http://127.0.0.1:1")))
	front.EnableHTTP2 = true
	wiretest.StartTLS(front)
	defer front.Close()
	resp, err := front.Client().Get(front.URL + "/echo/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != 400 {
		t.Errorf("response %s %s", resp.Proto, resp.Status)
	}
}

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
