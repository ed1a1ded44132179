package watchcodec_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// The header is sent before the first event (kubernetes#75837), and each event in its own chunk
// before the next one is written.
func TestEventsOneByOne(t *testing.T) {
	leaktest.Check(t)
	seen := make(chan struct{})
	client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		events, err := watchcodec.NewEventWriter(w)
		if err != nil {
			t.Error(err)
			return
		}
		for _, event := range []string{`{"type":"ADDED"}`, `{"type":"BOOKMARK"}`} {
			wiretest.Await(t, seen, "the client's word")
			if err := events.WriteEvent([]byte(event)); err != nil {
				t.Error(err)
			}
		}
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	header := client.Header()
	if !strings.HasPrefix(header, "HTTP/1.1 200 OK\r\n") || !strings.Contains(header, "Content-Type: application/json\r\n") {
		t.Errorf("header %q", header)
	}
	seen <- struct{}{}
	client.Receive("11\r\n{\"type\":\"ADDED\"}\n\r\n")
	seen <- struct{}{}
	client.Receive("14\r\n{\"type\":\"BOOKMARK\"}\n\r\n")
	client.Receive("0\r\n\r\n")
}

func TestWriterKeepsContentType(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json;as=Table")
	if _, err := watchcodec.NewEventWriter(w); err != nil || w.Header().Get("Content-Type") != "application/json;as=Table" {
		t.Errorf("%v, Content-Type %q", err, w.Header().Get("Content-Type"))
	}
}

// Without a flush no watch can be served, and for a client that has disconnected an error is
// returned.
func TestWriterErrors(t *testing.T) {
	if _, err := watchcodec.NewEventWriter(struct{ http.ResponseWriter }{httptest.NewRecorder()}); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("error %v", err)
	}
	gone := errors.New("gone")
	w, err := watchcodec.NewEventWriter(&failing{ResponseRecorder: httptest.NewRecorder(), err: gone})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteEvent([]byte("{}")); err != gone {
		t.Errorf("error %v", err)
	}
}

type failing struct {
	*httptest.ResponseRecorder
	err error
}

func (f *failing) Write([]byte) (int, error) { return 0, f.err }

// A watch of two events, split into frames on the client's side.
func ExampleEventWriter() {
	apiserver := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		events, err := watchcodec.NewEventWriter(w)
		if err != nil {
			return
		}
		_ = events.WriteEvent([]byte(`{"type":"ADDED","object":{"kind":"Pod"}}`))
		_ = events.WriteEvent([]byte(`{"type":"DELETED","object":{"kind":"Pod"}}`))
	}))
	defer apiserver.Close()

	resp, err := http.Get(apiserver.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	events := watchcodec.NewJSONReader(resp.Body, 0)
	for {
		event, err := events.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", event)
	}
	// Output:
	// {"type":"ADDED","object":{"kind":"Pod"}}
	// {"type":"DELETED","object":{"kind":"Pod"}}
	// EOF
}

func BenchmarkWriteEvent(b *testing.B) {
	w, err := watchcodec.NewEventWriter(discard{http.Header{}})
	if err != nil {
		b.Fatal(err)
	}
	event := []byte(strings.Repeat("x", 1024))
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteEvent(event); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}
