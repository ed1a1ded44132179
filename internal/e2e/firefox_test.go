package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// firefox is Debian's Firefox ESR with a profile of its own, driven by WebDriver BiDi
// (w3c.github.io/webdriver-bidi), which it speaks without a driver beside it.
type firefox struct {
	conn    *websocket.Conn
	context string
	id      int
}

// quietFirefox keeps Firefox from talking to other servers.
const quietFirefox = `user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("services.settings.server", "http://127.0.0.1:1/");
user_pref("browser.newtabpage.enabled", false);
user_pref("network.http.speculative-parallel-limit", 0);
`

func startFirefox(t *testing.T) *firefox {
	t.Helper()
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Fatalf("Debian's Firefox is needed (apt-get install firefox-esr): %v", err)
	}
	dir := profile(t)
	write(t, filepath.Join(dir, "user.js"), []byte(quietFirefox))
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", dir, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+dir, "MOZ_DISABLE_CONTENT_SANDBOX=1") // the tests may run as root
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
				address <- url
			}
		}
	}()
	f := new(firefox)
	select {
	case url := <-address:
		var err error
		if f.conn, _, err = websocket.DefaultDialer.Dial(url+"/session", nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.conn.Close() })
	case <-time.After(time.Minute):
		t.Fatal("Firefox does not come up")
	}
	f.do(t, "session.new", map[string]any{"capabilities": map[string]any{}})
	var tree struct{ Contexts []struct{ Context string } }
	f.result(t, f.do(t, "browsingContext.getTree", map[string]any{}), &tree)
	f.context = tree.Contexts[0].Context
	return f
}

// do sends a command and returns its result.
func (f *firefox) do(t *testing.T, method string, params map[string]any) json.RawMessage {
	t.Helper()
	result, refused := f.call(t, method, params)
	if refused != "" {
		t.Fatalf("%s %v: %s", method, params, refused)
	}
	return result
}

// call sends a command and returns its result, or why Firefox refuses it.
func (f *firefox) call(t *testing.T, method string, params map[string]any) (result json.RawMessage, refused string) {
	t.Helper()
	f.id++
	if err := f.conn.WriteJSON(map[string]any{"id": f.id, "method": method, "params": params}); err != nil {
		t.Fatal(err)
	}
	_ = f.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		var response struct {
			ID             int
			Type           string
			Result         json.RawMessage
			Error, Message string
		}
		if err := f.conn.ReadJSON(&response); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if response.ID != f.id {
			continue // an event
		}
		if response.Type == "error" {
			return nil, response.Error + ": " + response.Message
		}
		return response.Result, ""
	}
}

func (f *firefox) result(t *testing.T, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

// open goes to a page as a user does who enters its address.
func (f *firefox) open(t *testing.T, url string) {
	t.Helper()
	for _, at := range []string{"about:blank", url} {
		f.do(t, "browsingContext.navigate", map[string]any{"context": f.context, "url": at, "wait": "complete"})
	}
}

// eval runs an expression in the page, awaits its promise and returns the text that it is.
func (f *firefox) eval(t *testing.T, expression string) string {
	t.Helper()
	return f.value(t, expression, f.do(t, "script.evaluate", f.evaluate(expression)))
}

// at returns what an expression is, "" where a navigation has taken the page away before.
func (f *firefox) at(t *testing.T, expression string) string {
	t.Helper()
	result, refused := f.call(t, "script.evaluate", f.evaluate(expression))
	if refused != "" {
		return ""
	}
	return f.value(t, expression, result)
}

func (f *firefox) evaluate(expression string) map[string]any {
	return map[string]any{"expression": expression, "target": map[string]any{"context": f.context}, "awaitPromise": true}
}

func (f *firefox) value(t *testing.T, expression string, result json.RawMessage) string {
	t.Helper()
	var r struct {
		Type   string
		Result struct{ Value any }
	}
	f.result(t, result, &r)
	if r.Type != "success" {
		t.Fatalf("%s: %s", expression, r.Type)
	}
	return fmt.Sprint(r.Result.Value)
}
