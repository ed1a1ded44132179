package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// output collects the log.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// write creates a file of rules, in which TARGET is a server's address.
func write(t *testing.T, name, text, target string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "TARGET", target)), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// start serves rules in front of h and returns the address and the log.
func start(t *testing.T, rules string, h http.Handler) (address string, log *output) {
	t.Helper()
	leaktest.Check(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	target := wiretest.Unused(t)
	if h != nil {
		target = wiretest.Serve(t, h)
	}
	c, err := readConfig(write(t, "rules.yaml", rules, target))
	if err != nil {
		t.Fatal(err)
	}
	log = &output{}
	d, err := newDevProxy(c, newLog(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return wiretest.Serve(t, d), log
}

func get(t *testing.T, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
		if fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, string(body)
}

// received responds with the request that the target received.
var received = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %s %s", r.Host, r.RequestURI, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Extra"))
})

// The three rules of the incident, which are included in the program: the very first request is
// the terminal's WebSocket, and its first frame arrives.
func TestIncidentFirstWebSocketOfTheDevProxy(t *testing.T) {
	c, err := readConfig("testdata/console.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Proxy) != 3 || fmt.Sprint(c.Proxy[0].Context, c.Proxy[1].Context, c.Proxy[2].Context) != "[/api] [/account] [/exec]" || !c.Proxy[2].WS {
		t.Fatalf("rules %+v", c.Proxy)
	}
	target := wiretest.Serve(t, http.HandlerFunc(echo))
	for _, r := range c.Proxy {
		r.Target = "http://" + target
	}
	leaktest.Check(t)
	log := &output{}
	d, err := newDevProxy(c, newLog(log))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	address := wiretest.Serve(t, d)
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+address+"/exec/terminal", nil)
	if err != nil {
		t.Fatalf("%v %v\n%s", resp, err, log)
	}
	defer conn.Close()
	const size = `{"Width":80,"Height":20}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(size)); err != nil {
		t.Fatal(err)
	}
	if _, message, err := conn.ReadMessage(); err != nil || string(message) != size {
		t.Errorf("the first frame came back as %q, %v", message, err)
	}
	// Without ws in a rule, an upgrade is a plain request, and has a response.
	if conn, resp, err := websocket.DefaultDialer.Dial("ws://"+address+"/api/x", nil); err == nil || resp == nil || resp.StatusCode != 200 {
		t.Errorf("an upgrade of /api: %v %v %v", conn, resp, err)
	}
}

func TestRewrites(t *testing.T) {
	address, _ := start(t, `
proxy:
  - context: [/api, /v1]
    target: http://TARGET/base/
    changeOrigin: true
    pathRewrite: {"^/api/(\\w+)": "/$1x", "^/v1": "/one", "^/": "/never/"}
    headers: {X-Extra: more}
  - context: /plain
    target: http://TARGET
    xfwd: true
`, received)
	for path, want := range map[string]string{
		"/api/pods/%2F?x=%zz": "TARGET /base/podsx/%2F?x=%zz  more",
		"/v1/y":               "TARGET /base/one/y  more",
		"/plain/z":            "browser.test /plain/z 127.0.0.1 ",
	} {
		_, got := get(t, "http://"+address+path, "Host", "browser.test")
		host, _, _ := strings.Cut(got, " ")
		if host != "browser.test" {
			got = strings.Replace(got, host, "TARGET", 1)
		}
		if got != want {
			t.Errorf("%s: received %q, want %q", path, got, want)
		}
	}
}

func TestRouter(t *testing.T) {
	other := wiretest.Serve(t, respond("other"))
	third := wiretest.Serve(t, respond("third"))
	address, _ := start(t, `
proxy:
  /:
    target: http://TARGET
    router: {"integration.test": "http://`+other+`", "browser.test/api": "http://`+third+`", "/rest": "http://`+third+`"}
`, respond("own"))
	for _, test := range [][3]string{
		{"browser.test", "/", "own"}, {"Integration.test", "/", "other"}, {"browser.test", "/api/x", "third"}, {"else.test", "/rest", "third"},
	} {
		if _, got := get(t, "http://"+address+test[1], "Host", test[0]); got != test[2] {
			t.Errorf("%s%s: %q, want %q", test[0], test[1], got, test[2])
		}
	}
}

func respond(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

func TestCookiesAndRedirects(t *testing.T) {
	target := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1; Domain=app.test; Path=/old; HttpOnly")
		w.Header().Add("Set-Cookie", "b=2; Domain=else.test; Path=/")
		location := "http://" + r.Host + "/next?q=%zz"
		if r.URL.Path == "/auto/away" {
			location = "http://elsewhere.test/next"
		}
		w.Header().Set("Location", location)
		w.WriteHeader(302)
	})
	address, _ := start(t, `
proxy:
  - context: /auto
    target: http://TARGET
    changeOrigin: true
    autoRewrite: true
    protocolRewrite: https
    cookieDomainRewrite: {app.test: dev.test, "*": ""}
    cookiePathRewrite: {/old: /new}
  - context: /host
    target: http://TARGET
    changeOrigin: true
    hostRewrite: fixed.test:99
    cookieDomainRewrite: ""
`, target)
	for path, want := range map[string]string{
		"/auto":      "https://browser.test/next?q=%zz a=1; Domain=dev.test; Path=/new; HttpOnly b=2; Path=/",
		"/auto/away": "http://elsewhere.test/next a=1; Domain=dev.test; Path=/new; HttpOnly b=2; Path=/",
		"/host":      "http://fixed.test:99/next?q=%zz a=1; Path=/old; HttpOnly b=2; Path=/",
	} {
		resp, _ := get(t, "http://"+address+path, "Host", "browser.test")
		if got := resp.Header.Get("Location") + " " + strings.Join(resp.Header["Set-Cookie"], " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestBypassAndStatic(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"index.html": "the page", "app.js": "the script"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	address, _ := start(t, `
static: `+dir+`
proxy:
  - context: ["/api/**", "!/api/*.js"]
    target: http://TARGET
    bypass:
      - {accept: text/html, serve: /index.html}
      - {path: /api/health, status: 204}
`, respond("target"))
	for _, test := range []struct {
		path, accept string
		status       int
		want         string
	}{
		{"/api/x", "text/html,*/*", 200, "the page"},
		{"/api/x", "application/json", 200, "target"},
		{"/api/health", "", 204, ""},
		{"/api/app.js", "", 404, "404 page not found\n"},
		{"/app.js", "", 200, "the script"},
		{"/", "", 200, "the page"},
	} {
		resp, got := get(t, "http://"+address+test.path, "Accept", test.accept)
		if resp.StatusCode != test.status || got != test.want {
			t.Errorf("%s for %s: %d %q", test.path, test.accept, resp.StatusCode, got)
		}
	}
}

func TestSecure(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewUnstartedServer(respond("secret"))
	s.Config.ErrorLog = wiretest.Quiet()
	s.StartTLS()
	defer s.Close()
	address, log := start(t, `
proxy:
  /any: {target: "`+s.URL+`", secure: false}
  /verified: "`+s.URL+`"
`, nil)
	if _, got := get(t, "http://"+address+"/any"); got != "secret" {
		t.Errorf("secure: false got %q", got)
	}
	if resp, _ := get(t, "http://"+address+"/verified"); resp.StatusCode != 502 || !strings.Contains(log.String(), "it can't be reached: tls: failed to verify certificate") {
		t.Errorf("an unknown certificate: %s\n%s", resp.Status, log)
	}
}

// The log reports what happened, to which target, and what to do.
func TestLog(t *testing.T) {
	address, log := start(t, `
proxy:
  - {context: /down, target: "http://TARGET"}
  - {context: /quiet, target: "http://TARGET", logLevel: silent}
`, nil)
	resp, body := get(t, "http://"+address+"/down?x")
	const want = "FAILED: nothing listens there (connection refused): is the server running?"
	if resp.StatusCode != 502 || !strings.Contains(body, "nothing listens there (connection refused)") {
		t.Errorf("response %s %q", resp.Status, body)
	}
	get(t, "http://"+address+"/quiet")
	got := log.String()
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, " GET /down?x → http://127.0.0.1:") || !strings.HasSuffix(got, want+"\n") {
		t.Errorf("logged %q", got)
	}
}

func TestAnnounce(t *testing.T) {
	c, err := readConfig("testdata/console.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDevProxy(c, newLog(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var out strings.Builder
	d.announce(&out, "http://127.0.0.1:9000")
	want := `devproxy on http://127.0.0.1:9000
  /api      → http://127.0.0.1:8081  changeOrigin, ^/api becomes ""
  /account  → http://127.0.0.1:8082  xfwd
  /exec     → http://127.0.0.1:8083  WebSockets
Ctrl-C ends it.
`
	if out.String() != want {
		t.Errorf("announced\n%s", out.String())
	}
}

// Errors name the file, the line and the field.
func TestBadRules(t *testing.T) {
	for want, text := range map[string]string{
		`: there are no rules under "proxy"`:                                 "listen: a:1",
		":2: proxies: there is no such field":                                "\nproxies: []",
		":3: proxy.wss: there is no such field":                              "proxy:\n- context: /a\n  wss: true",
		":3: proxy.changeorigin: there is no such field, it is changeOrigin": "proxy:\n- context: /a\n  changeorigin: true",
		":4: proxy.ws: this is the second one, after that of line 3":         "proxy:\n- context: /a\n  ws: true\n  ws: false",
		":3: proxy.proxyTimeout: cannot unmarshal !!str `soon` into int":     "proxy:\n- context: /a\n  proxyTimeout: soon",
		":4: proxy.bypass.status: cannot unmarshal !!str `x` into int":       "proxy:\n- context: /a\n  bypass:\n  - status: x",
		":4: proxy.headers.X-A: a text is wanted":                            "proxy:\n- context: /a\n  headers:\n    X-A: [b]",
		":1: listen: cannot unmarshal !!seq into string":                     "listen: [a]",
		":1: https: a mapping is wanted":                                     "https: 7",
		":2: https.chain: there is no such field":                            "https:\n  chain: a",
		": https needs both cert and key":                                    "https: {cert: a}\nproxy: {/a: 'http://a'}",
		":2: a rule has no context":                                          "proxy:\n- target: http://a",
		":2: a rule has no target":                                           "proxy:\n- context: /a",
		`:2: logLevel: "loud" is none of`:                                    "proxy:\n- {context: /a, target: 'http://a', logLevel: loud}",
		`:4: protocolRewrite: "ftp" is neither`:                              "proxy:\n- context: /a\n  target: http://a\n  protocolRewrite: ftp",
		":3: timeout: it is negative":                                        "proxy:\n- {context: /a, target: 'http://a',\n   timeout: -1}",
		":3: proxyTimeout: it is negative":                                   "proxy:\n- {context: /a, target: 'http://a',\n   proxyTimeout: -1}",
		`:3: proxy.followRedirects: "b.test" is not an origin such as`:       "proxy:\n- context: /a\n  followRedirects: [b.test]",
		":3: proxy.followRedirects: cannot unmarshal !!str `yes please`":     "proxy:\n- context: /a\n  followRedirects: yes please",
		":2: auth: it is not of the form user:password":                      "proxy:\n- {context: /a, target: 'http://a', auth: me}",
		`:4: headers: "X A": "b" is not a field of HTTP`:                     "proxy:\n- {context: /a, target: 'http://a', headers:\n  {X-B: c,\n  X A: b}}",
		":2: bypass: it needs either serve or status":                        "proxy:\n- {context: /a, target: 'http://a', bypass: {accept: x}}",
		":2: bypass: 7 is no status of a response":                           "proxy:\n- {context: /a, target: 'http://a', bypass: {status: 7}}",
		`:2: bypass: it serves a file, but there is no "static"`:             "proxy:\n- {context: /a, target: 'http://a', bypass: {serve: /x}}",
		":1: proxy: it is neither a list nor a mapping":                      "proxy: 7",
		`:2: context: "api" does not begin with /`:                           "proxy:\n- {context: api, target: 'http://a'}",
		`:2: context: ["!/x"] has exceptions alone`:                          "proxy:\n- {context: '!/x', target: 'http://a'}",
		":3: pathRewrite: error parsing regexp: missing closing ): `^(`":     "proxy:\n- {context: /a, target: 'http://a', pathRewrite:\n  {'^(': x}}",
		`:3: router: "ftp://b": the scheme must be http, https, ws or wss`:   "proxy:\n- {context: /a, router:\n  {b: 'ftp://b'}}",
		`:2: target: "ftp://a": the scheme must be http, https, ws or wss`:   "proxy:\n- {context: /a, target: 'ftp://a'}",
		`:2: target: a user in the URL is not sent: write it into auth`:      "proxy:\n- {context: /a, target: 'http://u:secret@a'}",
		`:3: target: a user in the URL is not sent: write it into auth`:      "proxy:\n-\n  {context: /a, target: 'u:secret@a:1'}",
		`:2: target: invalid URL escape "%zz"`:                               "proxy:\n- {context: /a, target: 'http://u:secret%zz@a'}",
		`:2: target: "http://" has no host`:                                  "proxy:\n- {context: /a, target: 'http://'}",
	} {
		name := write(t, "rules.yaml", text, "")
		c, err := readConfig(name)
		if err == nil {
			_, err = newDevProxy(c, newLog(io.Discard))
		}
		if err == nil || !strings.HasPrefix(err.Error(), name+want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is shown: %v", err)
		}
	}
	if _, err := readConfig("missing.yaml"); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("error %v", err)
	}
}

// auth is sent to the target, unless headers has an Authorization of its own.
func TestAuth(t *testing.T) {
	addr, _ := start(t, "proxy:\n- {context: /a, target: 'http://TARGET', auth: 'me:se:cret'}\n- {context: /b, target: 'http://TARGET', auth: 'me:x', headers: {authorization: Bearer t}}",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Values("Authorization")) }))
	for path, want := range map[string]string{"/a": "[Basic bWU6c2U6Y3JldA==]", "/b": "[Bearer t]"} {
		if _, body := get(t, "http://"+addr+path, "Authorization", "Basic of the browser"); body != want {
			t.Errorf("%s: the target got %s, want %s", path, body, want)
		}
	}
}

// A browser that stops in the middle of its body has the rule's timeout.
func TestTimeout(t *testing.T) {
	addr, log := start(t, "proxy:\n- {context: /a, target: 'http://TARGET', timeout: 30}", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	client := wiretest.Dial(t, addr)
	client.Send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
	if resp, _ := client.Response("POST"); resp.StatusCode != 408 {
		t.Errorf("%s\n%s", resp.Status, log)
	}
}

func TestJSON(t *testing.T) {
	c, err := readConfig(write(t, "rules.json", `{"listen": "127.0.0.1:0", "proxy": {"/api": {"target": "http://TARGET", "ws": true}, "/b": "http://TARGET"}}`, "127.0.0.1:80"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Proxy) != 2 || c.Proxy[0].Context[0] != "/api" || !c.Proxy[0].WS || c.Proxy[1].Target != "http://127.0.0.1:80" {
		t.Errorf("rules %+v", c.Proxy)
	}
}

func TestContexts(t *testing.T) {
	for _, test := range []struct {
		context string
		path    string
		want    bool
	}{
		{"/api", "/api/x", true}, {"/api", "/apis", true}, {"/api", "/b", false},
		{"/*.html", "/a.html", true}, {"/*.html", "/a/b.html", false},
		{"**/*.html", "/a/b.html", true}, {"/api/**", "/api/a/b", true}, {"/api/**", "/api", false},
		{"/api/?/x", "/api/1/x", true}, {"/api/?/x", "/api/12/x", false},
		{"/a.b/*", "/acb/x", false},
	} {
		m, err := newMatcher([]string{test.context})
		if err != nil {
			t.Fatal(err)
		}
		if m.fits(test.path) != test.want {
			t.Errorf("%s fits %s: not %v", test.context, test.path, test.want)
		}
	}
}
