package filters_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// holding is a filter that holds the header back until the first content.
func holding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&heldHeader{w, 0}, r) })
}

type heldHeader struct {
	http.ResponseWriter
	status int
}

func (h *heldHeader) WriteHeader(status int) { h.status = status }

func (h *heldHeader) Write(p []byte) (int, error) {
	h.ResponseWriter.WriteHeader(h.status)
	return h.ResponseWriter.Write(p)
}

// If a filter between two Recovers panics while the handler writes, the outer Recover responds. The inner one can't know
// whether the header was sent.
func TestRecoverOfAFilterAround(t *testing.T) {
	panics := filters.OnResponse(filters.ResponseHooks{Header: func(*http.Request, int, http.Header) { panic("boom") }})
	for _, test := range []struct {
		name    string
		between culvert.Filter
		handler http.HandlerFunc
	}{
		{"WriteHeader", panics, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }},
		{"Write", panics, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) }},
		{"WriteString", panics, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }},
		{"ReadFrom", panics, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("page")) }},
		{"Flush", panics, func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }},
		{"Hijack", panics, func(w http.ResponseWriter, _ *http.Request) { _, _, _ = http.NewResponseController(w).Hijack() }},
		{"header held until the content", filters.NewChain(panics, holding).Then, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte("page"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			leaktest.Check(t)
			outer, inner := make(lines, 2), make(lines, 2)
			chain := filters.NewChain(filters.Recover(slog.New(slog.NewTextHandler(outer, nil))), test.between,
				filters.Recover(slog.New(slog.NewTextHandler(inner, nil))))
			client := wiretest.Dial(t, wiretest.Serve(t, chain.Then(test.handler)))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if got := client.Ended(); !strings.HasPrefix(got, "HTTP/1.1 500 ") || !strings.HasSuffix(got, "\r\n\r\nInternal Server Error\n") {
				t.Errorf("got %q", got)
			}
			if len(outer) != 1 || len(inner) != 0 { // the log is written before the response
				t.Fatalf("%d lines of the outer Recover, %d of the inner one", len(outer), len(inner))
			}
			if text := <-outer; !strings.Contains(text, "panic=boom ") || !strings.Contains(text, "recover_test.go") {
				t.Errorf("logged %q", text)
			}
		})
	}
}

// A panic of the source that the handler copies from is the handler's own.
func TestRecoverOfASource(t *testing.T) {
	leaktest.Check(t)
	log := make(lines, 2)
	chain := filters.NewChain(filters.OnResponse(filters.ResponseHooks{}), filters.Recover(slog.New(slog.NewTextHandler(log, nil))))
	client := wiretest.Dial(t, wiretest.Serve(t, chain.ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, panickingSource{})
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if got := client.Ended(); got != "" {
		t.Errorf("got %q", got)
	}
	if text := wiretest.Await(t, log, "log"); !strings.Contains(text, "panic=source ") {
		t.Errorf("logged %q", text)
	}
}

type panickingSource struct{}

func (panickingSource) Read([]byte) (int, error) { panic("source") }

// An invalid status is a panic of the handler before the header: no hook of an outer filter is called with it.
func TestRecoverOfAnInvalidStatus(t *testing.T) {
	for _, status := range []int{-1, 0, 99, 1000} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			leaktest.Check(t)
			ended := make(chan culvert.ResponseStats, 1)
			chain := filters.NewChain(filters.OnResponse(filters.ResponseHooks{End: func(_ *http.Request, s culvert.ResponseStats) { ended <- s }}),
				filters.Recover(slog.New(slog.DiscardHandler)), filters.OnResponse(filters.ResponseHooks{}))
			client := wiretest.Dial(t, wiretest.Serve(t, chain.ThenFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if got := client.Ended(); !strings.HasPrefix(got, "HTTP/1.1 500 ") {
				t.Errorf("got %q", got)
			}
			if s := wiretest.Await(t, ended, "handler's end"); s.Status != 500 || s.Bytes != int64(len("Internal Server Error\n")) || s.Aborted {
				t.Errorf("stats %+v", s)
			}
		})
	}
}
