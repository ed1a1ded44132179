package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec/remotecommand"
)

// start serves a terminal in front of the demo's shell.
func start(t *testing.T) (address string, log *wiretest.Log) {
	t.Helper()
	d, err := startDemo()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return startAt(t, cluster{server: d.url})
}

func startAt(t *testing.T, c cluster) (address string, log *wiretest.Log) {
	t.Helper()
	log = new(wiretest.Log)
	terminal, err := newTerminal(c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(terminal.close)
	s := httptest.NewServer(terminal)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), log
}

const demoPath = "/api/v1/namespaces/default/pods/demo/exec?stdin=true&stdout=true&tty=true&command=sh"

func dial(t *testing.T, address string, offered ...string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: offered, HandshakeTimeout: 5 * time.Second}
	conn, response, err := d.Dial("ws://"+address+demoPath, nil)
	if err != nil {
		t.Fatal(err, response)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	return conn
}

// expect reads the output until it contains want.
func expect(t *testing.T, conn *websocket.Conn, p remotecommand.Protocol, want string) {
	t.Helper()
	var got strings.Builder
	for !strings.Contains(got.String(), want) {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("%v; printed so far: %q, want %q", err, got.String(), want)
		}
		m, err := p.Decode(kind == websocket.TextMessage, message)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(m.Data)
	}
}

// TestBridge: a browser uses text, the server behind uses binary messages, and the size arrives
// before the first prompt.
func TestBridge(t *testing.T) {
	address, log := start(t)
	conn := dial(t, address, string(remotecommand.V4Base64))
	if got := conn.Subprotocol(); got != string(remotecommand.V4Base64) {
		t.Fatalf("the browser receives %q", got)
	}
	say := func(c byte, text string) {
		message := string('0'+c) + base64.StdEncoding.EncodeToString([]byte(text))
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	say(remotecommand.Resize, `{"Width":80,"Height":20}`)
	expect(t, conn, remotecommand.V4Base64, "80x20 $ ")
	say(remotecommand.Stdin, "grüße\r")
	expect(t, conn, remotecommand.V4Base64, "grüße: not found")
	say(remotecommand.Resize, `{"Width":100,"Height":30}`)
	say(remotecommand.Stdin, "size\r")
	expect(t, conn, remotecommand.V4Base64, "100 columns, 30 rows")
	say(remotecommand.Stdin, "exit 7\r")
	expect(t, conn, remotecommand.V4Base64, `"message":"7"`)
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the end: %v", err)
	}
	if strings.Contains(log.String(), "ignore") {
		t.Errorf("the log complains:\n%s", log)
	}
}

// TestIgnoredFramesAreNamed: the incident of the terminal that was never resized. Its first frame
// has no base64, and the server reports nothing.
func TestIgnoredFramesAreNamed(t *testing.T) {
	for offered, test := range map[remotecommand.Protocol]struct {
		kind int
		size string
		why  string
	}{
		remotecommand.V4Base64: {websocket.TextMessage, `4{"Width":80,"Height":20}`, "the size is not in base64"},
		remotecommand.V4:       {websocket.BinaryMessage, `4{"Width":80,"Height":20}`, "the digit '4'"},
	} {
		address, log := start(t)
		conn := dial(t, address, string(offered))
		if err := conn.WriteMessage(test.kind, []byte(test.size)); err != nil {
			t.Fatal(err)
		}
		good, err := offered.Append(nil, remotecommand.Size{Width: 90, Height: 25}.Message())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.WriteMessage(test.kind, good); err != nil {
			t.Fatal(err)
		}
		expect(t, conn, offered, "90x25 $ ") // the session continues
		if !strings.Contains(log.String(), "the server would ignore this frame") || !strings.Contains(log.String(), test.why) {
			t.Errorf("%s: the log says\n%s", offered, log)
		}
	}
}

// TestOnlyExec: a page on loopback with a token accepts no other client, and of the API only
// exec; the client's own credentials are not passed on.
func TestOnlyExec(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _ := startAt(t, cluster{server: server.URL, tokenFile: token})
	for _, test := range []struct {
		path   string
		fields map[string]string
		want   int
	}{
		{"/", nil, 200},
		{"/terminal.js", nil, 200},
		{"/api/v1/namespaces/default/secrets", nil, 404},
		{"/api/v1/namespaces/default/pods/p/log", nil, 404},
		{demoPath, map[string]string{"Origin": "http://evil.example"}, 403},
		{demoPath, map[string]string{"Host": "evil.example"}, 403},
		{demoPath, map[string]string{"Host": "evil.example", "Sec-Websocket-Protocol": string(browsers)}, 403},
		{demoPath, map[string]string{"Origin": "http://evil.example", "Sec-Websocket-Protocol": string(browsers)}, 403},
		{demoPath, map[string]string{"Authorization": "Bearer stolen", "Cookie": "a=b"}, 403}, // the server's own
	} {
		seen = nil
		r, _ := http.NewRequest(http.MethodGet, "http://"+address+test.path, nil)
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		for name, value := range test.fields {
			r.Header.Set(name, value)
		}
		r.Host = test.fields["Host"]
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != test.want {
			t.Errorf("%s %v: %d, want %d", test.path, test.fields, response.StatusCode, test.want)
		}
		if got := seen.Get("Authorization") + seen.Get("Cookie"); (seen != nil) != (test.fields["Cookie"] != "") || seen != nil && got != "Bearer secret" {
			t.Errorf("%s %v: the server saw %q", test.path, test.fields, got)
		}
	}
}

// TestRefusals: a page shows what the API server says when it refuses a session, and why it can't be reached.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"a Status", `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"demo\" is forbidden: User \"eve\"","code":403}`, 403, `"message":"pods \"demo\" is forbidden: User \"eve\""`},
		{"a text", "container not found (\"a\")\n", 500, `"message":"container not found (\"a\") (500)"`},
		{"nothing", "", 404, `"message":"Not Found (404)"`},
		{"too much", strings.Repeat("x", 1<<20), 400, `xxx (400)"`},
		{"no server", "", 0, `"message":"the API server can't be reached: dial tcp `},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		}))
		if test.status == 0 {
			server.Close()
		}
		address, log := startAt(t, cluster{server: server.URL})
		conn := dial(t, address, string(browsers))
		if err := conn.WriteMessage(websocket.TextMessage, []byte("4"+base64.StdEncoding.EncodeToString([]byte(`{"Width":80,"Height":20}`)))); err != nil {
			t.Fatal(err)
		}
		expect(t, conn, browsers, test.want)
		if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("%s: the end: %v", test.name, err)
		}
		conn.Close()
		server.Close()
		if !strings.Contains(log.String(), "no session") {
			t.Errorf("%s: the log has only %s", test.name, log)
		}
	}
}

// TestCommandLine: wrong options are named, and the demo prints its address.
func TestCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"-server example.com:6443":                                 "-server example.com:6443: want http://host:port or https://host:port",
		"-server https://10.0.0.1/k8s":                             "want http://host:port",
		"-listen 0.0.0.0:0":                                        "not a loopback address, and the page has no login",
		"-server https://h:1 -ca /nonexistent -listen 127.0.0.1:0": "-ca: open /nonexistent",
	} {
		fields := strings.Fields(args)
		if !strings.Contains(args, "-listen") {
			fields = append(fields, "-listen", "127.0.0.1:0")
		}
		if err := run(t.Context(), fields, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-demo", "-listen", "127.0.0.1:0"}, w, io.Discard) }()
	var url string
	if _, err := fmt.Fscanln(r, &url); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if csp := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") {
		t.Errorf("Content-Security-Policy %q", csp)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
