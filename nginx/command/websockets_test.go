//go:build unix

package command_test

import (
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A server that shuts down closes each of a thousand WebSockets, in the middle of their messages,
// with code 1001 at both ends, never 1006 (caddy#4762, traefik#3636).
func TestShutdownClosesWebSockets(t *testing.T) {
	for name, signal := range map[string]os.Signal{"quit": syscall.SIGQUIT, "stop": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			const clients = 1000
			upgrader := websocket.Upgrader{}
			codes := make(chan error, 2*clients)
			app := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := upgrader.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				codes <- echo(conn)
			}))
			p := startProcess(t, `server { listen ADDRESS; location / { proxy_pass http://`+app+`; proxy_http_version 1.1;
				proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } }`)
			var conns []*websocket.Conn
			for range clients {
				conn, _, err := websocket.DefaultDialer.Dial("ws://"+p.address+"/", nil)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conns = append(conns, conn)
			}
			var speaking sync.WaitGroup
			for _, conn := range conns {
				speaking.Add(1)
				go func() { codes <- converse(conn, speaking.Done) }()
			}
			speaking.Wait()
			p.signal(signal)
			for range 2 * clients {
				if err := wiretest.Await(t, codes, "end of a WebSocket"); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
					t.Fatalf("ended with %v", err)
				}
			}
			p.ended()
		})
	}
}

// echo sends every message back, and returns the error that ends it.
func echo(conn *websocket.Conn) error {
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if err := conn.WriteMessage(kind, message); err != nil {
			_, _, err = conn.ReadMessage() // the reason of the end
			return err
		}
	}
}

// converse sends messages as long as they come back, and returns the error that ends it. heard is
// called when the first one has returned.
func converse(conn *websocket.Conn, heard func()) error {
	message := make([]byte, 3000)
	for {
		_ = conn.WriteMessage(websocket.BinaryMessage, message) // a failure is seen when reading
		if _, _, err := conn.ReadMessage(); err != nil {
			return err
		}
		if heard != nil {
			heard()
			heard = nil
		}
	}
}
