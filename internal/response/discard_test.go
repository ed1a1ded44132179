package response_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/response"
)

// replaced is a transform that discards the body from the first write of "bad" on, and sends another at its end.
type replaced struct {
	w        io.Writer
	discards bool
}

func (b *replaced) Write(p []byte) (int, error) {
	b.discards = b.discards || strings.Contains(string(p), "bad")
	return len(p), nil
}

func (b *replaced) Discards() bool { return b.discards }

func (b *replaced) Close() error {
	_, err := io.WriteString(b.w, "replacement")
	return err
}

// suffixed is a transform that records whether it was closed.
type suffixed struct {
	io.Writer
	closed *bool
}

func (b suffixed) Close() error {
	*b.closed = true
	_, err := io.WriteString(b, " and its end")
	return err
}

// wrapping is a writer of another module. It may keep what is written to it.
type wrapping struct{ http.ResponseWriter }

func (w wrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// around serves h in a filter with the transform that body makes.
func around(h http.HandlerFunc, body func(io.Writer) io.WriteCloser) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		response.Serve(h, w, r, &response.Hooks{Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
			made := body(w)
			if _, ok := made.(*replaced); ok {
				h.Del("Content-Length")
			}
			return made
		}})
	}
}

// A handler may stop within a content that a filter discards, however long it has announced it to be: the transforms inside of
// that filter are not closed, and those around it are.
func TestAbandonedContent(t *testing.T) {
	for name, test := range map[string]struct {
		first string // what the handler writes before it calls Discards
		wrap  func(http.ResponseWriter) http.ResponseWriter
		want  bool
	}{
		"from the header on":           {"", nil, true},
		"from a write on":              {"bad", nil, true},
		"in a Bounded":                 {"", func(w http.ResponseWriter) http.ResponseWriter { return deadline.BoundOwn(w, new(http.Request)) }, true},
		"not":                          {"good", nil, false},
		"in a writer of other content": {"", func(w http.ResponseWriter) http.ResponseWriter { return wrapping{w} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var inner, outer bool
			handler := func(w http.ResponseWriter, _ *http.Request) {
				if test.wrap != nil {
					w = test.wrap(w)
				}
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(http.StatusOK)
				_, _ = io.WriteString(w, test.first)
				if got := response.Discards(w); got != test.want {
					t.Errorf("discards: %v, want %v", got, test.want)
				}
				if test.want {
					response.Abandon(w)
					return
				}
				_, _ = io.WriteString(w, strings.Repeat("x", 100))
			}
			h := around(handler, func(w io.Writer) io.WriteCloser { return suffixed{w, &inner} })
			h = around(h, unchanged)
			h = around(h, func(w io.Writer) io.WriteCloser { return &replaced{w: w, discards: test.first == ""} })
			h = around(h, func(w io.Writer) io.WriteCloser { return suffixed{w, &outer} })
			w := httptest.NewRecorder()
			h(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if got := w.Body.String(); got != "replacement and its end" {
				t.Errorf("the client gets %q", got)
			}
			if inner == test.want || !outer {
				t.Errorf("closed: inside %v, outside %v", inner, outer)
			}
		})
	}
}

// unchanged is the Body hook of a filter that leaves the body unchanged.
func unchanged(io.Writer) io.WriteCloser { return nil }

// A transform that discards a body does not hold its handler to the Content-Length of it.
func TestDiscardedContentIsShort(t *testing.T) {
	h := around(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "part")
	}, func(w io.Writer) io.WriteCloser { return &replaced{w: w, discards: true} })
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Body.String(); got != "replacement" {
		t.Errorf("the client gets %q", got)
	}
}
