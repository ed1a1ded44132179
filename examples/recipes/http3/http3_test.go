package http3_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	quichttp3 "github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/examples/recipes/http3"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// certificate returns httptest's certificate, which is for example.com and 127.0.0.1, as a server and as a client have it.
func certificate(t *testing.T) (server, client *tls.Config) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}, s.Client().Transport.(*http.Transport).TLSClientConfig
}

// serve serves h by HTTP/3, and by TCP on the same port.
func serve(t *testing.T, config *tls.Config, h http.Handler) (addr string) {
	t.Helper()
	var overTCP net.Listener
	var overUDP net.PacketConn
	for range 100 { // until a port is free for both
		var err error
		if overTCP, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if overUDP, err = net.ListenPacket("udp", overTCP.Addr().String()); err == nil {
			break
		}
		overTCP.Close()
	}
	addr = overTCP.Addr().String()
	tcp, udp := http3.Servers(addr, config, h)
	tcp.ErrorLog = log.New(io.Discard, "", 0)
	served := make(chan error, 2)
	go func() { served <- udp.Serve(overUDP) }()
	go func() { served <- tcp.ServeTLS(overTCP, "", "") }()
	t.Cleanup(func() {
		udp.Close()
		tcp.Close()
		overUDP.Close()
		<-served
		<-served
	})
	return addr
}

// client returns a client of HTTP/3.
func client(t *testing.T, config *tls.Config) *http.Client {
	transport := &quichttp3.Transport{TLSClientConfig: config}
	t.Cleanup(func() { transport.Close() })
	return &http.Client{Transport: transport}
}

func gateway(t *testing.T, roots *tls.Config, targets ...upstream.Target) http.Handler {
	group, err := http3.Targets(roots, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group.Close()
		group.Transport().(*quichttp3.Transport).Close()
	})
	h, err := proxy.New(proxy.Options{Upstream: group, OnError: func(_ *http.Request, err *culvert.Error) { t.Log(err) }})
	if err != nil {
		t.Fatal(err)
	}
	return filters.NewChain().Then(h)
}

func TestBothSides(t *testing.T) {
	server, roots := certificate(t)
	next := make(chan string)
	target := serve(t, server, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			for message := range next {
				_, _ = io.WriteString(w, message)
				_ = http.NewResponseController(w).Flush()
			}
		case "/upload":
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(w, n, err)
		default:
			w.Header().Set("X-Proto", r.Proto)
			w.WriteHeader(http.StatusTeapot)
			_, _ = fmt.Fprint(w, r.RequestURI, " for ", r.Header.Get("X-Forwarded-Proto"))
		}
	}))
	addr := serve(t, server, gateway(t, roots, upstream.Target{Addr: target}))
	c := client(t, roots)

	resp, err := c.Get("https://" + addr + "/a%2Fb?c=%zz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusTeapot || resp.Proto != "HTTP/3.0" || resp.Header.Get("X-Proto") != "HTTP/3.0" || string(body) != "/a%2Fb?c=%zz for https" {
		t.Errorf("%d %s %v %s, %v", resp.StatusCode, resp.Proto, resp.Header, body, err)
	}

	resp, err = c.Post("https://"+addr+"/upload", "", bytes.NewReader(make([]byte, 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	body, err = io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "1048576 <nil>" || err != nil {
		t.Errorf("an upload: %s, %v", body, err)
	}

	go func() { next <- "first" }()
	if resp, err = c.Get("https://" + addr + "/stream"); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"first", "second"} { // which is sent when the first one was received
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("a stream: %q, %v", got, err)
		}
		if want == "first" {
			next <- "second"
		}
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); len(rest) != 0 || err != nil {
		t.Errorf("the stream's end: %q, %v", rest, err)
	}
}

// Clients of TCP learn of HTTP/3.
func TestAltSvc(t *testing.T) {
	server, roots := certificate(t)
	addr := serve(t, server, http.NotFoundHandler())
	// The UDP server listens when a client of it has a response.
	resp, err := client(t, roots).Get("https://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	transport := &http.Transport{TLSClientConfig: roots, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if resp, err = (&http.Client{Transport: transport}).Get("https://" + addr); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, port, _ := net.SplitHostPort(addr)
	if got := resp.Header.Get("Alt-Svc"); !strings.HasPrefix(got, `h3=":`+port+`"`) || resp.ProtoMajor != 2 {
		t.Errorf("Alt-Svc %q over %s", got, resp.Proto)
	}
}

// A target that can't be reached is followed by the next one.
func TestNextTarget(t *testing.T) {
	server, roots := certificate(t)
	target := serve(t, server, http.NotFoundHandler())
	wrong := roots.Clone()
	wrong.ServerName = "other.example" // no target is what it should be
	for config, want := range map[*tls.Config]int{roots: http.StatusNotFound, wrong: http.StatusBadGateway} {
		// A target that speaks no HTTP/3 refuses the handshake.
		l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: server.Certificates, NextProtos: []string{"other"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := gateway(t, config, upstream.Target{Addr: l.Addr().String()}, upstream.Target{Addr: target})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "https://shop.example/", strings.NewReader("order")).WithContext(context.Background()))
		if w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
		l.Close()
	}
}
