package demo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/examples/nginx/demo"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/watchcodec"
)

// start serves the demonstration's configuration until the test ends and returns
// its address.
func start(t *testing.T) string {
	t.Helper()
	leaktest.Check(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	t.Setenv(demo.AddressVariable, wiretest.Free(t))
	d, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDemo(t, d) })
	server, err := nginx.New(nginx.Options{Prefix: d.Dir, File: d.File, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	listeners := server.Listeners()
	if len(listeners) != 1 || listeners[0].Address != d.Address {
		t.Fatalf("listens on %v, want %s", listeners, d.Address)
	}
	return wiretest.Serve(t, listeners[0].Handler)
}

// closeDemo closes the demonstration and checks that nothing is left on disk.
func closeDemo(t *testing.T, d *demo.Demo) {
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func get(t *testing.T, url string, want int) (http.Header, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Errorf("%s: %d %v, want %d", url, resp.StatusCode, err, want)
	}
	return resp.Header, string(body)
}

// getJSON decodes url's response.
func getJSON(t *testing.T, url string, into any) {
	t.Helper()
	header, body := get(t, url, http.StatusOK)
	if err := json.Unmarshal([]byte(body), into); err != nil || header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %v, %v in %q", url, header, err, body)
	}
}

// The page has no placeholder left, and its assets may be cached for a week.
func TestPage(t *testing.T) {
	addr := start(t)
	_, page := get(t, "http://"+addr+"/", http.StatusOK)
	if strings.Contains(page, "{{") || !strings.Contains(page, "culvert") {
		t.Errorf("page %q", page)
	}
	for _, asset := range []string{"page.css", "page.js", "culvert.svg"} {
		header, body := get(t, "http://"+addr+"/assets/"+asset, http.StatusOK)
		if body == "" || strings.Contains(body, "{{") || header.Get("Cache-Control") != "max-age=604800" {
			t.Errorf("%s: %v %q", asset, header, body)
		}
	}
}

// The status page shows the upstreams of the configuration, and can't be kept.
func TestStatus(t *testing.T) {
	addr := start(t)
	header, page := get(t, "http://"+addr+"/status", http.StatusOK)
	if got := header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	for _, upstream := range []string{"cluster", "console", "gone", "socket", "turns"} {
		if !strings.Contains(page, "<h2>"+upstream+" <small>http</small></h2>") {
			t.Errorf("no %s in %s", upstream, page)
		}
	}
}

// Two app servers take turns, or one serves all requests of a client.
func TestApps(t *testing.T) {
	addr := start(t)
	for path, different := range map[string]int{"/turns": 2, "/console": 1} {
		names := map[string]string{}
		for range 4 {
			var page struct{ Upstream, Address string }
			getJSON(t, "http://"+addr+path, &page)
			names[page.Upstream] = page.Address
		}
		if len(names) != different {
			t.Errorf("%s was served by %v", path, names)
		}
	}
}

// The WebSocket's backend responds with 404 to a request that reaches it without its upgrade, and
// reports the requests that it received.
func TestSocket(t *testing.T) {
	addr := start(t)
	if conn, resp, err := websocket.DefaultDialer.Dial("ws://"+addr+"/socket/before?run", nil); err == nil || resp == nil || resp.StatusCode != http.StatusNotFound {
		t.Fatalf("before: %v %v %v", conn, resp, err)
	}
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+addr+"/socket/now?run", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if kind, message, err := conn.ReadMessage(); kind != websocket.TextMessage || string(message) != "hello" || err != nil {
		t.Errorf("got %d %q %v", kind, message, err)
	}

	type received struct {
		URI, Upgrade, Connection string
		Status                   int
	}
	var got []received
	getJSON(t, "http://"+addr+"/socket/received?run", &got)
	want := []received{
		{"/socket/before?run", "", "", 404},
		{"/socket/now?run", "websocket", "upgrade", 101}, // as the configuration spells it
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("received %v, want %v", got, want)
	}
	getJSON(t, "http://"+addr+"/socket/received?other", &got)
	if len(got) != 0 {
		t.Errorf("another run of the page sees %v", got)
	}
}

// The number of recorded requests is bounded, and the newest are kept.
func TestSocketForgets(t *testing.T) {
	addr := start(t)
	for i := range 100 {
		get(t, fmt.Sprintf("http://%s/socket/%d?run", addr, i), http.StatusNotFound)
	}
	var got []struct{ URI string }
	getJSON(t, "http://"+addr+"/socket/received?run", &got)
	if len(got) != 64 || got[63].URI != "/socket/99?run" {
		t.Errorf("%d requests are recorded, the last is %v", len(got), got[len(got)-1])
	}
}

// The page that is gone is counted for each address, and is sent with a Cache-Control that its
// server did not set.
func TestGone(t *testing.T) {
	addr := start(t)
	for range 2 {
		header, _ := get(t, "http://"+addr+"/gone?run", http.StatusGone)
		if got := header.Get("Cache-Control"); got != "private, no-cache" {
			t.Errorf("Cache-Control %q", got)
		}
	}
	for query, want := range map[string]int{"/gone%3Frun": 2, "/gone%3Fother": 0} {
		var page struct{ Visits int }
		getJSON(t, "http://"+addr+"/gone/visits?of="+query, &page)
		if page.Visits != want {
			t.Errorf("%s: %d visits, want %d", query, page.Visits, want)
		}
	}
}

// watchcodec splits the watch, and each event is received alone: the next one is sent when the
// one before has been seen.
func TestWatch(t *testing.T) {
	slices := "http://" + start(t) + "/apis/discovery.k8s.io/v1/endpointslices"
	get(t, slices+"?seen=other", 204)
	resp, err := http.Get(slices + "?watch=true&step=a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	arrivals := &reads{Reader: resp.Body}
	events := watchcodec.NewJSONReader(arrivals, 0)
	var got []string
	for {
		frame, err := events.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		if err := json.Unmarshal(frame, &event); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(event.Type+" "+event.Object.Metadata.Name+" "+event.Object.Metadata.ResourceVersion))
		if n := bytes.Count(arrivals.last, []byte(`{"type":`)); n != 1 {
			t.Errorf("%d events came together: %q", n, arrivals.last)
		}
		get(t, slices+"?seen=a", 204)
	}
	want := "[ADDED console-1 4711 ADDED console-2 4712 MODIFIED console-1 4713 MODIFIED console-2 4714 DELETED console-1 4715 BOOKMARK  4716]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// reads records the last piece that was received.
type reads struct {
	io.Reader
	last []byte
}

func (r *reads) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.last = bytes.Clone(p[:n])
	}
	return n, err
}

func TestAnnounce(t *testing.T) {
	t.Setenv(demo.AddressVariable, "")
	d, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer closeDemo(t, d)
	if d.Address != "127.0.0.1:8080" {
		t.Errorf("address %q", d.Address)
	}
	var out strings.Builder
	d.Announce(&out)
	for _, want := range []string{d.File, d.Dir + "/access.log", "http://127.0.0.1:8080/ ", "http://127.0.0.1:8080/status ", "-c /etc/nginx/nginx.conf"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}

// Backends end with the demonstration, even in the middle of a response.
func TestCloseEndsResponses(t *testing.T) {
	leaktest.Check(t)
	d, err := demo.Start()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(d.File)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(content), "upstream cluster { server ")
	cluster, _, ended := strings.Cut(after, ";")
	if !found || !ended {
		t.Fatalf("no cluster in %s", content)
	}
	client := wiretest.Dial(t, cluster)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Receive("HTTP/1.1 200 OK\r\n")
	closeDemo(t, d)
	if got := client.Ended(); strings.Contains(got, "BOOKMARK") {
		t.Errorf("the watch continued to its end: %q", got)
	}
	if conn, err := net.Dial("tcp", cluster); err == nil {
		conn.Close()
		t.Error("the backend still accepts")
	}
}
