package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/gorilla/websocket"
)

// What each client sees of each server.
const wsConversation = "chat, deflate, text grüße, binary 70000 true, pong, closed 4002 bye"

// TestWebSocketPeers lets the libraries that people use talk to one another through
// culvert, every client with every server: subprotocol, permessage-deflate, text, a long
// message, ping and close code.
func TestWebSocketPeers(t *testing.T) {
	node := installWS(t)
	servers := map[string]string{
		"gorilla": httpServer(t, gorillaServer),
		"coder":   httpServer(t, coderServer),
		"ws":      node.server(t),
	}
	clients := map[string]func(t *testing.T, url string) string{
		"gorilla": gorillaClient,
		"coder":   coderClient,
		"ws":      node.client,
	}
	for serverName, server := range servers {
		gateway := httptest.NewServer(gatewayTo(t, server, func(*http.Request) {}))
		t.Cleanup(gateway.Close)
		for clientName, client := range clients {
			t.Run(clientName+" to "+serverName, func(t *testing.T) {
				if got := client(t, "ws"+strings.TrimPrefix(gateway.URL, "http")); got != wsConversation {
					t.Errorf("the client saw\n%s\nwant\n%s", got, wsConversation)
				}
			})
		}
	}
}

func httpServer(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func gorillaServer(w http.ResponseWriter, r *http.Request) {
	u := websocket.Upgrader{Subprotocols: []string{"chat"}, EnableCompression: true, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := u.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		switch {
		case err != nil:
			return
		case string(message) == "close":
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4002, "bye"))
			continue // until the reply
		}
		_ = conn.WriteMessage(kind, message)
	}
}

func coderServer(w http.ResponseWriter, r *http.Request) {
	conn, err := coder.Accept(w, r, &coder.AcceptOptions{
		Subprotocols: []string{"chat"}, InsecureSkipVerify: true, CompressionMode: coder.CompressionContextTakeover, CompressionThreshold: 1,
	})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	for {
		kind, message, err := conn.Read(r.Context())
		switch {
		case err != nil:
			return
		case string(message) == "close":
			_ = conn.Close(4002, "bye")
			return
		}
		_ = conn.Write(r.Context(), kind, message)
	}
}

func bigMessage() []byte { return bytes.Repeat([]byte("culvert "), 70000/8) }

func gorillaClient(t *testing.T, url string) string {
	d := websocket.Dialer{Subprotocols: []string{"chat"}, EnableCompression: true}
	conn, resp, err := d.Dial(url, nil)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	seen := []string{conn.Subprotocol(), compression(resp.Header)}
	_ = conn.WriteMessage(websocket.TextMessage, []byte("grüße"))
	conn.SetPongHandler(func(string) error {
		seen = append(seen, "pong")
		return conn.WriteMessage(websocket.TextMessage, []byte("close"))
	})
	for {
		kind, message, err := conn.ReadMessage()
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed):
			return strings.Join(append(seen, fmt.Sprintf("closed %d %s", closed.Code, closed.Text)), ", ")
		case err != nil:
			return strings.Join(append(seen, err.Error()), ", ")
		case kind == websocket.TextMessage:
			seen = append(seen, "text "+string(message))
			_ = conn.WriteMessage(websocket.BinaryMessage, bigMessage())
		default:
			seen = append(seen, fmt.Sprintf("binary %d %v", len(message), bytes.Equal(message, bigMessage())))
			_ = conn.WriteControl(websocket.PingMessage, []byte("?"), time.Now().Add(time.Second))
		}
	}
}

func compression(h http.Header) string {
	if strings.Contains(h.Get("Sec-WebSocket-Extensions"), "permessage-deflate") {
		return "deflate"
	}
	return "plain"
}

func coderClient(t *testing.T, url string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, resp, err := coder.Dial(ctx, url, &coder.DialOptions{
		Subprotocols: []string{"chat"}, CompressionMode: coder.CompressionContextTakeover, CompressionThreshold: 1,
	})
	if err != nil {
		return err.Error()
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	seen := []string{conn.Subprotocol(), compression(resp.Header)}
	_ = conn.Write(ctx, coder.MessageText, []byte("grüße"))
	_, message, err := conn.Read(ctx)
	if err != nil {
		return err.Error()
	}
	seen = append(seen, "text "+string(message))
	_ = conn.Write(ctx, coder.MessageBinary, bigMessage())
	_, message, err = conn.Read(ctx)
	if err != nil {
		return err.Error()
	}
	seen = append(seen, fmt.Sprintf("binary %d %v", len(message), bytes.Equal(message, bigMessage())))
	last := make(chan error, 1)
	go func() { // a ping needs a reader
		_, _, err := conn.Read(ctx)
		last <- err
	}()
	if err := conn.Ping(ctx); err != nil {
		return err.Error()
	}
	_ = conn.Write(ctx, coder.MessageText, []byte("close"))
	var closed coder.CloseError
	if err := <-last; !errors.As(err, &closed) {
		return fmt.Sprint(err)
	}
	return strings.Join(append(seen, "pong", fmt.Sprintf("closed %d %s", closed.Code, closed.Reason)), ", ")
}

// nodeWS is a folder with Node's ws in it.
type nodeWS string

func installWS(t *testing.T) nodeWS {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "ws"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("Node's ws is needed (apt-get install npm): %v\n%s", err, out)
	}
	return nodeWS(dir)
}

func (dir nodeWS) server(t *testing.T) (address string) {
	t.Helper()
	cmd := exec.Command("node", "server.js")
	cmd.Dir, cmd.Stderr = string(dir), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, _, splitErr := net.SplitHostPort(strings.TrimSpace(line)); err != nil || splitErr != nil {
		t.Fatalf("the server says %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (dir nodeWS) client(t *testing.T, url string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "client.js", url)
	cmd.Dir = string(dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}
