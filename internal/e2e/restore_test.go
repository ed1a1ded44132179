package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/wsupgrade"
)

// TestAccidentRestoreBehindNginx stands behind a real nginx that forwards neither
// Upgrade nor Connection, in HTTP/1.0 and in HTTP/1.1: WebSockets open where Restore
// is, and do not where it is not. A client that has not requested an upgrade gets none,
// and the connection that carried its request is not used again.
func TestAccidentRestoreBehindNginx(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(chattyApp))
	t.Cleanup(app.Close)
	restore, err := wsupgrade.Restore(func(r *http.Request) bool { return r.URL.Path == "/ws" })
	if err != nil {
		t.Fatal(err)
	}
	plain := gatewayTo(t, app.Listener.Addr().String(), func(*http.Request) {})
	for _, version := range []string{"1.0", "1.1"} {
		for name, h := range map[string]http.Handler{"with Restore": filters.NewChain(restore).Then(plain), "without": plain} {
			t.Run("HTTP/"+version+" "+name, func(t *testing.T) {
				gateway := httptest.NewServer(h)
				t.Cleanup(gateway.Close)
				front := startNginx(t, `http { access_log off; upstream gateway { server `+gateway.Listener.Addr().String()+`; keepalive 4; }
server { listen {{LISTEN}}; location / { proxy_pass http://gateway; proxy_http_version `+version+`; proxy_set_header Host $http_host; proxy_set_header Connection ""; } } }`, nil)
				conn, resp, err := websocket.DefaultDialer.Dial("ws://"+front.address+"/ws", nil)
				if name == "without" {
					if err == nil {
						t.Fatal("the WebSocket opened")
					}
					fact(t, "the status of gorilla/websocket's response to a plain GET", resp.StatusCode, http.StatusBadRequest)
					return
				}
				if err != nil {
					t.Fatalf("%v (%v)", err, resp)
				}
				defer conn.Close()
				if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
					t.Fatal(err)
				}
				if _, got, err := conn.ReadMessage(); err != nil || string(got) != "hello" {
					t.Errorf("got %q: %v", got, err)
				}
				if err := conn.WriteMessage(websocket.TextMessage, []byte("bye")); err != nil {
					t.Fatal(err)
				}
				if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, 4001) {
					t.Errorf("ended with %v", err)
				}
				withoutUpgrade(t, front)
			})
		}
	}
}

// withoutUpgrade sends what Restore takes for a handshake without requesting an upgrade.
func withoutUpgrade(t *testing.T, front *server) {
	t.Helper()
	request := strings.NewReplacer("Upgrade: websocket\r\n", "", "Connection: Upgrade\r\n", "", webSocketFrame, "").Replace(webSocketRequest("/ws"))
	conn, err := net.Dial("tcp", front.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request+webSocketFrame)
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if got, _ := io.ReadAll(conn); strings.Contains(string(got), "hello") {
		t.Errorf("a tunnel that was not requested: %q", got)
	}
	for range 8 { // over the connections that nginx keeps
		if got := exchange(t, front.address, "", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET"); got[0].Status != 200 || !strings.Contains(got[0].Body, "<!doctype html>") {
			t.Errorf("after it: %+v", got)
		}
	}
}
