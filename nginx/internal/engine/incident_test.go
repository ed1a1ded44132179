package engine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// tomcat is the application of the incident: it accepts proper upgrades on /serviceName/ws and
// responds with 404 there to everything else; on /serviceName/gone it responds with 410 and no
// header field about caching.
func tomcat(t *testing.T, seen chan<- *http.Request) string {
	t.Helper()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen != nil {
			seen <- r
		}
		switch {
		case r.URL.Path == "/serviceName/gone":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, "<h1>gone</h1>")
		case r.URL.Path != "/serviceName/ws":
			fmt.Fprintf(w, "page %s", r.RequestURI)
		case !websocket.IsWebSocketUpgrade(r):
			http.NotFound(w, r)
		default:
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Errorf("upgrade: %v", err)
				return
			}
			defer conn.Close()
			for {
				kind, data, err := conn.ReadMessage()
				if err != nil {
					return
				}
				if conn.WriteMessage(kind, data) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// source serves the configuration of the incident in front of two such applications.
func source(t *testing.T, name string, seen chan<- *http.Request) *site {
	t.Helper()
	outer, err := os.ReadFile(filepath.Join("..", "..", "testdata", "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.ReadFile(filepath.Join("..", "..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(inner)
	for _, placeholder := range []string{"127.0.0.1:PORT1", "127.0.0.1:PORT2"} {
		text = strings.ReplaceAll(text, placeholder, tomcat(t, seen))
	}
	return serve(t, map[string]string{"nginx.conf": string(outer), "source.conf": text, "html/app.js": "js"})
}

func TestSourceConfigurationOpensTheWebSocket(t *testing.T) {
	s := source(t, "source.conf", nil)
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+s.first+"/serviceName/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	equal(t, "status", resp.StatusCode, http.StatusSwitchingProtocols)
	for _, text := range []string{"first", "second"} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, got, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "echo", string(got), text)
	}
}

// nginx drops Upgrade unless it is configured to pass it on, so the application received a plain
// request and responded with 404.
func TestIncidentUpgradeLinesAreMissing(t *testing.T) {
	seen := make(chan *http.Request, 1)
	s := source(t, "source_without_upgrade.conf", seen)
	_, resp, err := websocket.DefaultDialer.Dial("ws://"+s.first+"/serviceName/ws", nil)
	if err == nil {
		t.Fatal("the WebSocket opened, and the configuration does not forward it")
	}
	equal(t, "status", resp.StatusCode, http.StatusNotFound)
	r := <-seen
	equal(t, "Upgrade at the application", r.Header.Get("Upgrade"), "")
	equal(t, "Connection at the application", r.Header.Get("Connection"), "")
	equal(t, "path at the application", r.RequestURI, "/serviceName/ws")
}

// A plain request to the location with the upgrade lines is a plain one at the application too,
// and its connection is closed: ” maps to close.
func TestSourceConfigurationPlainRequest(t *testing.T) {
	seen := make(chan *http.Request, 1)
	s := source(t, "source.conf", seen)
	equal(t, "status", s.get("/serviceName/ws").StatusCode, http.StatusNotFound)
	r := <-seen
	equal(t, "Upgrade at the application", r.Header.Get("Upgrade"), "")
	equal(t, "Connection at the application", r.Header.Get("Connection"), "close")
	equal(t, "Host at the application", r.Host, "console")
}

func TestSourceConfigurationCaching(t *testing.T) {
	s := source(t, "source.conf", nil)
	page := s.get("/serviceName/x")
	equal(t, "page", page.body, "page /serviceName/x")
	equal(t, "Cache-Control of a page", page.Header.Get("Cache-Control"), "no-cache, no-store, must-revalidate")
	js := s.get("/app.js")
	equal(t, "asset", js.body, "js")
	equal(t, "Cache-Control of an asset", strings.Join(js.Header["Cache-Control"], "|"),
		"max-age=604800|no-cache, no-store, must-revalidate")
}

// add_header without "always" skips a 410, and browsers keep a bare 410 for
// ever.
func TestIncident410IsNotKept(t *testing.T) {
	s := source(t, "source.conf", nil)
	gone := s.get("/serviceName/gone")
	equal(t, "status", gone.StatusCode, http.StatusGone)
	equal(t, "body", gone.body, "<h1>gone</h1>")
	equal(t, "Cache-Control", strings.Join(gone.Header["Cache-Control"], "|"), "private, no-cache")
	equal(t, "Expires", strings.Join(gone.Header["Expires"], "|"), "Thu, 01 Jan 1970 00:00:01 GMT")
}

// The configuration's freshness of errors wins.
func TestConfiguredFreshnessOfErrorsWins(t *testing.T) {
	s := serve(t, server(`
		location /a { add_header Cache-Control "max-age=60" always; return 410; }
		location /b { return 410; }
		location /c { add_header Cache-Control "max-age=60"; return 410; }`))
	equal(t, "always", strings.Join(s.get("/a").Header["Cache-Control"], "|"), "max-age=60")
	equal(t, "nothing", strings.Join(s.get("/b").Header["Cache-Control"], "|"), "private, no-cache")
	equal(t, "without always", strings.Join(s.get("/c").Header["Cache-Control"], "|"), "private, no-cache")
}
