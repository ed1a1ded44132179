package main

import (
	"bufio"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestUpgradesOverTLS: what kubectl exec, attach and port-forward need: upgrades reach an API
// server that speaks TLS with a certificate of its own cluster, with the credentials of the
// caller. With -share the gateway's own are used only for callers that give none, in a header
// field or as browsers do.
func TestUpgradesOverTLS(t *testing.T) {
	const browser = "v5.channel.k8s.io, " + bearerProtocol + "Y2FsbGVy"
	var whose atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol := r.Header.Get("Upgrade")
		if protocol == "" || !strings.HasSuffix(r.URL.Path, "/exec") {
			http.Error(w, "no such thing", http.StatusNotFound)
			return
		}
		whose.Store(r.Header.Get("Authorization") + r.Header.Get("Sec-Websocket-Protocol"))
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		accept := "" // of the key below, see RFC 6455, section 1.3
		if protocol == "websocket" {
			accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n"
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n"+accept+"\r\na stream")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"ca":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"token": []byte("own"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, share := range []bool{false, true} {
		args := []string{"-server", server.URL, "-ca", filepath.Join(dir, "ca"), "-node", "node0", "-token-file", filepath.Join(dir, "token")}
		if share {
			args = append(args, "-share")
		}
		s, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGateway(s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(g.handler)
		for _, c := range []struct{ protocol, fields, want string }{
			{"SPDY/3.1", "Authorization: Bearer caller\r\n", "Bearer caller"},
			{"SPDY/3.1", "", map[bool]string{true: "Bearer own"}[share]},
			{"websocket", "Authorization: Bearer caller\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n", "Bearer callerv5.channel.k8s.io"},
			{"websocket", "Sec-WebSocket-Protocol: " + browser + "\r\n", browser},
		} {
			whose.Store("none")
			fields := c.fields
			method := http.MethodPost
			if c.protocol == "websocket" {
				method = http.MethodGet
				fields += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
			}
			conn, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, method+" /api/v1/namespaces/shop/pods/p/exec?command=sh HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: "+c.protocol+"\r\n"+fields+"\r\n")
			in := bufio.NewReader(conn)
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			stream := make([]byte, 8)
			if _, err := io.ReadFull(in, stream); response.StatusCode != http.StatusSwitchingProtocols || err != nil || string(stream) != "a stream" {
				t.Errorf("share %v, %s: %s %q %v", share, c.protocol, response.Status, stream, err)
			}
			if whose.Load() != c.want {
				t.Errorf("share %v, %s with %q: the server receives %q, want %q", share, c.protocol, c.fields, whose.Load(), c.want)
			}
			conn.Close()
		}
		front.Close()
		g.close()
	}
}
