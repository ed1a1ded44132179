package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// TestWatchtestCompressesAndUpgrades: what the scripted server sends compressed, and over
// WebSocket, is what it sends plain, event by event.
func TestWatchtestCompressesAndUpgrades(t *testing.T) {
	s, err := watchtest.New(watchtest.Options{Resource: "pods", Kind: "Pod", APIVersion: "v1", Gzip: true,
		JSON: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	s.Set(somePod(1, 1, false))
	server := httptest.NewServer(s)
	defer server.Close()
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?watch=1&timeoutSeconds=1"} {
		plain, encoding := fetchEncoded(t, server.URL+path, "identity")
		zipped, zippedEncoding := fetchEncoded(t, server.URL+path, "gzip")
		if encoding != "" || zippedEncoding != "gzip" {
			t.Errorf("%s: Content-Encoding %q and %q", path, encoding, zippedEncoding)
		}
		z, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) || len(plain) == 0 {
			t.Errorf("%s: %q %v, want %q", path, got, err, plain)
		}
	}
	conn, response, err := websocket.DefaultDialer.Dial(strings.Replace(server.URL, "http", "ws", 1)+"/api/v1/pods?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer conn.Close()
	for _, want := range []string{`{"type":"ADDED"`, `{"type":"MODIFIED"`} {
		_, message, err := conn.ReadMessage()
		if err != nil || !strings.HasPrefix(string(message), want) {
			t.Errorf("%q %v, want %s", message, err, want)
		}
		s.Set(somePod(1, 2, false))
	}
}

func fetchEncoded(t *testing.T, url, accept string) (body []byte, encoding string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return body, resp.Header.Get("Content-Encoding")
}

// TestFilteredWatchIsCompressed: behind filters.Compress a filtered watch is one gzip member,
// of which each event can be read when it has happened.
func TestFilteredWatchIsCompressed(t *testing.T) {
	s := podServer(t, false)
	compress, err := filters.Compress(filters.CompressOptions{Encodings: []string{"gzip"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(filters.NewChain(compress, hidingPods(t, watchcodec.FilterOptions{})).Then(s))
	defer server.Close()
	r, err := http.NewRequest(http.MethodGet, server.URL+"/api/v1/pods?watch=1&timeoutSeconds=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	for i := range 3 {
		s.Set(somePod(i, 1, false))
		s.Set(somePod(i+10, 1, true))
	}
	z, err := gzip.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	lines := bufio.NewReader(z)
	for i := range 3 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf(`"name":"pod-%02d"`, i); err != nil || !strings.Contains(line, want) {
			t.Fatalf("%q %v, want %s", line, err, want)
		}
		if i == 0 {
			s.Set(somePod(20, 1, true)) // the stream is open
		}
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("behind them %q %v", rest, err)
	}
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("behind the member %q %v", rest, err)
	}
}
