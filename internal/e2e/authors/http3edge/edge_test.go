package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// backend is a target for all tests.
type backend struct {
	events chan string   // what a stream of events sends next
	gone   chan struct{} // receives something when a stream has ended
	free   chan struct{} // lets /held respond
	held   chan struct{} // receives something when /held is called
}

func newBackend() *backend {
	return &backend{make(chan string), make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10)}
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):]; path {
	case "/page":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "%s %s", r.Proto, strings.Repeat("page ", 1000))
	case "/sum":
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d %x %v", n, sum.Sum(nil), err)
	case "/events":
		defer func() { b.gone <- struct{}{} }()
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-b.events:
				fmt.Fprintf(w, "data: %s\n\n", event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case "/held":
		b.held <- struct{}{}
		<-b.free
		_, _ = io.WriteString(w, "held")
	case "/echo":
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, message) != nil {
				return
			}
		}
	default:
		http.NotFound(w, r)
	}
}

// start starts targets and an edge: / is of HTTP/1, /three/ of HTTP/3.
func start(t *testing.T) (*edgeUnderTest, *backend) {
	t.Helper()
	leaktest.Check(t)
	b, f := newBackend(), certificate(t)
	one := httptest.NewServer(b)
	t.Cleanup(one.Close)
	return serve(t, f, Config{
		MaxBody: 10 << 20,
		Routes: map[string]Route{
			"/":       {Targets: []string{one.Listener.Addr().String()}},
			"/three/": {Targets: []string{startHTTP3(t, f, b)}, HTTP3: true, CA: f.cert, ServerName: "localhost"},
		},
	}), b
}

// prefixes are those of the routes, with the protocols of their targets.
var prefixes = map[string]string{"/": "HTTP/1.1", "/three/": "HTTP/3.0"}

func TestProtocols(t *testing.T) {
	e, _ := start(t)
	for protocol := 1; protocol <= 3; protocol++ {
		client := e.client(t, protocol)
		for prefix, target := range prefixes {
			resp := e.get(t, client, prefix+"page")
			if page := content(t, resp); resp.ProtoMajor != protocol || !strings.HasPrefix(page, target+" page") {
				t.Errorf("%d %spage: %s, %.20s", protocol, prefix, resp.Proto, page)
			}
			_, port, _ := strings.Cut(e.addr, ":")
			if got := resp.Header.Get("Alt-Svc"); protocol < 3 && !strings.Contains(got, `h3=":`+port+`"`) {
				t.Errorf("%d: Alt-Svc %q", protocol, got)
			}
			resp = e.get(t, client, prefix+"page", "Accept-Encoding", "gzip")
			if resp.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%d %spage is not compressed", protocol, prefix)
			}
			plain, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if page, err := io.ReadAll(plain); err != nil || !strings.HasPrefix(string(page), target) {
				t.Errorf("%.20s, %v", page, err)
			}
			if resp := e.get(t, client, prefix+"none"); resp.StatusCode != http.StatusNotFound {
				t.Error(resp.Status)
			}
		}
	}
	resp, err := http.Get("http://" + e.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if page := content(t, resp); !strings.Contains(page, `culvert_upstream="/three/",http_request_method="GET",http_response_status_code="200"`) {
		t.Errorf("metrics:\n%s", page)
	}
}

func TestUploads(t *testing.T) {
	e, _ := start(t)
	body := make([]byte, 8<<20)
	for i := range body {
		body[i] = byte(i * i >> 8)
	}
	want := fmt.Sprintf("%d %x <nil>", len(body), sha256.Sum256(body))
	for protocol := 1; protocol <= 3; protocol++ {
		client := e.client(t, protocol)
		for prefix := range prefixes {
			for _, known := range []bool{true, false} {
				var reader io.Reader = strings.NewReader(string(body))
				if !known {
					reader = io.MultiReader(reader)
				}
				resp, err := client.Post("https://"+e.addr+prefix+"sum", "", reader)
				if err != nil {
					t.Fatal(protocol, prefix, err)
				}
				got := content(t, resp)
				resp.Body.Close()
				if got != want {
					t.Errorf("%d %s: %s", protocol, prefix, got)
				}
			}
			resp, err := client.Post("https://"+e.addr+prefix+"sum", "", strings.NewReader(strings.Repeat("a", 10<<20+1)))
			if err != nil {
				t.Fatal(protocol, prefix, err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%d %s: too large: %s", protocol, prefix, resp.Status)
			}
		}
	}
}

// TestEvents checks that each event is received before the next one is sent, compressed or not, and that targets learn of
// clients that have gone.
func TestEvents(t *testing.T) {
	e, b := start(t)
	for protocol := 1; protocol <= 3; protocol++ {
		client := e.client(t, protocol)
		for prefix := range prefixes {
			for _, encoding := range []string{"identity", "gzip"} {
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+e.addr+prefix+"events", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Accept", "text/event-stream")
				r.Header.Set("Accept-Encoding", encoding)
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				b.events <- "0"
				var plain io.Reader = resp.Body
				if encoding == "gzip" {
					if plain, err = gzip.NewReader(resp.Body); err != nil {
						t.Fatal(err)
					}
				}
				lines := bufio.NewReader(plain)
				expectEvent(t, lines, "0")
				for _, event := range []string{"1", "2", "3"} {
					b.events <- event
					expectEvent(t, lines, event)
				}
				cancel()
				<-b.gone
				resp.Body.Close()
			}
		}
	}
}

func expectEvent(t *testing.T, lines *bufio.Reader, want string) {
	t.Helper()
	if line, err := lines.ReadString('\n'); err != nil || line != "data: "+want+"\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// TestShutdown checks that streams end at once, WebSockets with a Close frame, and that requests are waited for.
func TestShutdown(t *testing.T) {
	e, b := start(t)
	conn := dialWebSocket(t, e)
	var streams []*http.Response
	responses := make(chan string, 3)
	for protocol := 1; protocol <= 3; protocol++ {
		client := e.client(t, protocol)
		streams = append(streams, e.get(t, client, "/three/events", "Accept", "text/event-stream"))
		held := e.client(t, protocol)
		go func() {
			resp, err := held.Get("https://" + e.addr + "/held")
			if err != nil {
				responses <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			responses <- fmt.Sprint(string(body), err)
		}()
		<-b.held
	}
	e.shutdown()
	for range streams {
		<-b.gone
	}
	for _, stream := range streams {
		_, _ = io.Copy(io.Discard, stream.Body) // ends
	}
	_, _, err := conn.ReadMessage()
	if closed := new(websocket.CloseError); !errors.As(err, &closed) || closed.Code != websocket.CloseGoingAway {
		t.Error(err)
	}
	close(b.free)
	for range 3 {
		if got := <-responses; got != "held<nil>" {
			t.Error(got)
		}
	}
	if err := <-e.served; err != nil {
		t.Error(err)
	}
}

func dialWebSocket(t *testing.T, e *edgeUnderTest) *websocket.Conn {
	t.Helper()
	config := e.client(t, 1).Transport.(*http.Transport).TLSClientConfig
	conn, resp, err := (&websocket.Dialer{TLSClientConfig: config}).DialContext(t.Context(), "wss://"+e.addr+"/echo", nil)
	if err != nil {
		t.Fatal(err, resp)
	}
	t.Cleanup(func() { conn.Close() })
	for _, want := range []string{"a", strings.Repeat("b", 100_000)} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != want {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	return conn
}

// TestCutAfterGrace checks that a request that does not end is cut.
func TestCutAfterGrace(t *testing.T) {
	leaktest.Check(t)
	b, f := newBackend(), certificate(t)
	one := httptest.NewServer(b)
	defer one.Close()
	defer close(b.free)
	e := serve(t, f, Config{Grace: 1, Routes: map[string]Route{"/": {Targets: []string{one.Listener.Addr().String()}}}})
	errs := make(chan error, 3)
	for protocol := 1; protocol <= 3; protocol++ {
		client := e.client(t, protocol)
		go func() {
			resp, err := client.Get("https://" + e.addr + "/held")
			if err == nil {
				resp.Body.Close()
				err = fmt.Errorf("no error, but %s", resp.Status)
			} else {
				err = nil
			}
			errs <- err
		}()
		<-b.held
	}
	e.shutdown()
	if err := <-e.served; err == nil || !strings.Contains(err.Error(), "cut after 1s") {
		t.Error(err)
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestDeadTargets checks that another target gets what could not be sent.
func TestDeadTargets(t *testing.T) {
	leaktest.Check(t)
	b, f := newBackend(), certificate(t)
	other := certificate(t) // which is not trusted: no connection is made
	e := serve(t, f, Config{Routes: map[string]Route{
		"/": {Targets: []string{startHTTP3(t, other, b), startHTTP3(t, f, b)}, HTTP3: true, CA: f.cert, ServerName: "localhost"},
	}})
	client := e.client(t, 3)
	for range 4 {
		if resp := e.get(t, client, "/page"); resp.StatusCode != http.StatusOK {
			t.Error(resp.Status)
		}
	}
}

// TestConfigErrors checks that errors name what is wrong.
func TestConfigErrors(t *testing.T) {
	leaktest.Check(t)
	f := certificate(t)
	valid := fmt.Sprintf(`"listen":"127.0.0.1:0","cert":%q,"key":%q`, f.cert, f.key)
	const route = `"routes":{"/":{"targets":["127.0.0.1:1"]}}`
	for text, want := range map[string]string{
		`{`:                                     "unexpected EOF",
		`{"rots":{}}`:                           `"rots"`,
		`{` + valid + `}`:                       "routes: there are none",
		`{` + route + `}`:                       "cert and key",
		`{` + valid + `,"routes":{"media":{}}}`: `"media"`,
		`{` + valid + `,"routes":{"/":{"http3":true}}}`:                                   "/: http3 needs ca",
		`{` + valid + `,"routes":{"/":{"targets":["x"]}}}`:                                "routes: /: ",
		`{` + valid + `,"routes":{"/":{"targets":["a:1"],"ca":"missing.pem"}}}`:           "missing.pem",
		`{` + valid + `,` + route + `,"origins":["https://*app.example"]}`:                "origins: ",
		`{` + valid + `,` + route + `,"grace":-1}`:                                        "grace",
		`{"listen":"127.0.0.1:x",` + strings.SplitN(valid, ",", 2)[1] + `,` + route + `}`: "listen: ",
		`{` + valid + `,` + route + `,"metrics":"127.0.0.1:x"}`:                           "metrics: ",
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run(t.Context(), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
