package compose_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/culvert-go/culvert/examples/compose"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
)

func TestBrotliKeepsProxying(t *testing.T) {
	f, err := compose.Brotli(4)
	if err != nil {
		t.Fatal(err)
	}
	filtertest.Test(t, f, filtertest.TransformsBody())
}

// Pages are decoded by the real decoder, with the same encoder again and again, and a flushed event can be read at once.
func TestBrotli(t *testing.T) {
	f, err := compose.Brotli(4)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Repeat("<p>a page</p>\n", 1000)
	received := make(chan struct{})
	server := httptest.NewServer(filters.NewChain(f).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/events" {
			_, _ = io.WriteString(w, "an event")
			_ = http.NewResponseController(w).Flush()
			<-received
			return
		}
		_, _ = io.WriteString(w, page)
	}))
	defer server.Close()
	do := func(path string) *http.Response {
		r, err := http.NewRequest("GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip, br")
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Content-Encoding"); got != "br" {
			t.Fatalf("Content-Encoding %q", got)
		}
		return resp
	}
	for range 3 {
		resp := do("/")
		content, err := io.ReadAll(brotli.NewReader(resp.Body))
		resp.Body.Close()
		if string(content) != page || err != nil {
			t.Errorf("%d bytes, %v", len(content), err)
		}
	}
	resp := do("/events")
	event := make([]byte, 8)
	if _, err := io.ReadFull(brotli.NewReader(resp.Body), event); string(event) != "an event" || err != nil {
		t.Errorf("%q, %v", event, err)
	}
	close(received)
	resp.Body.Close()
	if curl, err := exec.LookPath("curl"); err == nil {
		out, err := exec.Command(curl, "-sS", "--compressed", "-H", "Accept-Encoding: br", server.URL).Output()
		if string(out) != page || err != nil {
			t.Errorf("curl: %d bytes, %v", len(out), err)
		}
	}
}

// Pages by Brotli for browsers, with a filter around the files that they are made of.
func ExampleBrotli() {
	compress, err := compose.Brotli(4)
	if err != nil {
		log.Fatal(err)
	}
	h := filters.NewChain(compress).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.Repeat("<p>a page</p>", 1000))
	})
	for _, accept := range []string{"gzip, deflate, br, zstd", "gzip"} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", accept)
		h.ServeHTTP(w, r)
		fmt.Println(w.Header().Get("Content-Encoding"), w.Body.Len() < 1000)
	}
	// Output:
	// br true
	// gzip true
}
