package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestBodyOfAReplacement: a handler that responds in the place of a target gets the whole body of the request if it was
// buffered. Else its reads fail: the target was sent the body, and the rest of it must not look like a whole one.
func TestBodyOfAReplacement(t *testing.T) { onPathsParallel(t, testBodyOfAReplacement) }

func testBodyOfAReplacement(t *testing.T, via path) {
	target := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	other := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%d %q", r.ContentLength, b)
	})
	forward := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, other)})
	reading := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		fmt.Fprintf(w, "%d %q", r.ContentLength, b)
	})
	for _, test := range []struct {
		name     string
		instead  http.Handler
		body     io.Reader
		buffered bool
		status   int
		content  string
	}{
		{"read", reading, strings.NewReader("body"), false, 418, ""},
		{"read, of no length", reading, io.MultiReader(strings.NewReader("body")), false, 418, ""},
		{"read, buffered", reading, strings.NewReader("body"), true, 200, `4 "body"`},
		{"read, none", reading, nil, false, 200, `0 ""`},
		{"forwarded", forward, strings.NewReader("body"), false, 500, "Internal Server Error\n"},
		{"forwarded, of no length", forward, io.MultiReader(strings.NewReader("body")), false, 500, "Internal Server Error\n"},
		{"forwarded, buffered", forward, strings.NewReader("body"), true, 200, `4 "body"`},
		{"forwarded, of no length, buffered", forward, io.MultiReader(strings.NewReader("body")), true, 200, `-1 "body"`},
		{"forwarded, none", forward, nil, false, 200, `0 ""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), ModifyResponse: func(a *proxy.Response) { a.ServeInstead(test.instead) }}
			if test.buffered {
				o.RequestBuffer = &proxy.Buffer{}
			}
			s := wiretest.NewServer(newProxy(t, via, o))
			defer s.Close()
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, test.body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); resp.StatusCode != test.status || string(b) != test.content || err != nil {
				t.Errorf("the client got %d %q, %v; want %d %q", resp.StatusCode, b, err, test.status, test.content)
			}
		})
	}
}
