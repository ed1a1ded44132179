package e2e

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	_ "github.com/culvert-go/culvert/wsupgrade/extendedconnect"
)

// TestChromiumWebSocketOverHTTP2 lets Chromium open a WebSocket on the connection that
// has brought the page, HTTP/2, to an application that speaks HTTP/1.1: subprotocol,
// compression, messages both ways and the close code are what the application and
// the page have said. Then the same over HTTP/1.1.
func TestChromiumWebSocketOverHTTP2(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(chattyApp))
	t.Cleanup(app.Close)
	for _, test := range []struct {
		name   string
		http2  bool
		method string
	}{{"HTTP/2", true, "CONNECT HTTP/2.0"}, {"HTTP/1.1", false, "GET HTTP/1.1"}} {
		t.Run(test.name, func(t *testing.T) {
			var seen atomic.Value
			gateway := httptest.NewUnstartedServer(gatewayTo(t, app.Listener.Addr().String(), func(r *http.Request) {
				if r.URL.Path == "/ws" {
					seen.Store(r.Method + " " + r.Proto)
				}
			}))
			gateway.EnableHTTP2 = test.http2
			gateway.StartTLS()
			t.Cleanup(gateway.Close)
			b := startBrowser(t, chromedp.Flag("ignore-certificate-errors", true))
			var got string
			b.run(t,
				chromedp.Navigate(gateway.URL+"/"),
				chromedp.Poll(`window.result`, &got, chromedp.WithPollingTimeout(30*time.Second)))
			want := "protocol chat\nextensions permessage-deflate\nbinary 70000\ntext grüße\nclosed 4001 enough true"
			if got != want {
				t.Errorf("the page saw\n%s\nwant\n%s\nconsole: %s", got, want, b.log())
			}
			if seen.Load() != test.method {
				t.Errorf("the gateway got the method %v, want %s", seen.Load(), test.method)
			}
		})
	}
}

const chattyPage = `<!doctype html><script>
const lines = [];
const ws = new WebSocket("wss://" + location.host + "/ws", ["other", "chat"]);
ws.binaryType = "arraybuffer";
ws.onopen = () => {
	lines.push("protocol " + ws.protocol, "extensions " + ws.extensions.split(";")[0]);
	ws.send(new Uint8Array(70000));
};
ws.onmessage = e => {
	if (typeof e.data == "string") { lines.push("text " + e.data); ws.send("bye"); return; }
	lines.push("binary " + e.data.byteLength);
	ws.send("grüße");
};
ws.onclose = e => { lines.push("closed " + e.code + " " + e.reason + " " + e.wasClean); window.result = lines.join("\n"); };
</script>`

// chattyApp serves the page and an echo that ends with a code of its own at "bye".
func chattyApp(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/ws" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, chattyPage)
		return
	}
	upgrader := websocket.Upgrader{EnableCompression: true, Subprotocols: []string{"chat"}, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if string(message) == "bye" {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "enough"))
			continue
		}
		if err := conn.WriteMessage(kind, message); err != nil {
			return
		}
	}
}

// gatewayTo returns a proxy inside filters that read responses.
func gatewayTo(t *testing.T, target string, look func(*http.Request)) http.Handler {
	t.Helper()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	p, err := proxy.New(proxy.Options{Upstream: group})
	if err != nil {
		t.Fatal(err)
	}
	compress, err := filters.Compress(filters.CompressOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return filters.NewChain(filters.AccessLog(slog.New(slog.DiscardHandler)), compress).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		look(r)
		p.ServeHTTP(w, r)
	})
}
