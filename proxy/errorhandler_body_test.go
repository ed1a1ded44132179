package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// TestBodyOfAnErrorHandler: an ErrorHandler that forwards to another group sends it the whole body if that was buffered, and
// else nothing that looks like one. The body was the first target's: the rest of it, or nothing, would look whole where
// it has no length.
func TestBodyOfAnErrorHandler(t *testing.T) { onPathsParallel(t, testBodyOfAnErrorHandler) }

func testBodyOfAnErrorHandler(t *testing.T, via path) {
	other := targetOver(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%q", b)
	})
	forward := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, other)})
	reads := targetOver(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	const refused = "500 Internal Server Error\n"
	for _, test := range []struct {
		name         string
		target, body string
		length, room int64
		want         string
	}{
		{"read, of no length", reads, "body", -1, 0, refused},
		{"read, buffered", reads, "body", 4, 10, `200 "body"`},
		{"read, of no length, buffered", reads, "body", -1, 10, `200 "body"`},
		{"too large for its buffer", reads, "some more than that", -1, 10, refused},
		{"read, none", reads, "", 0, 0, `200 ""`},
		{"unreachable, of no length", wiretest.Unused(t), "body", -1, 0, refused},
		{"unreachable, of no length, buffered", wiretest.Unused(t), "body", -1, 10, `200 "body"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := proxy.Options{Upstream: groupAt(t, upstream.Options{}, test.target)}
			o.ErrorHandler = func(w http.ResponseWriter, r *http.Request, _ *culvert.Error) { forward.ServeHTTP(w, r) }
			if test.room > 0 {
				o.RequestBuffer = &proxy.Buffer{Memory: test.room}
			}
			s := wiretest.NewServer(newProxy(t, via, o))
			defer s.Close()
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = test.length
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if got := fmt.Sprintf("%d %s", resp.StatusCode, b); got != test.want || err != nil {
				t.Errorf("the client got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// TestBodyOfAFailedUpgrade: the body of an upgrade was read before its target failed. An ErrorHandler gets all of it, or an
// error if it could not be read to its end.
func TestBodyOfAFailedUpgrade(t *testing.T) {
	leaktest.Check(t)
	target := targetOver(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: []string{"tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{"body": "4 <nil>", strings.Repeat("x", 100<<10): "0 http: request body too large"} {
		s := wiretest.NewServer(newProxy(t, ownExchange, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Upgrades: upgrades,
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ *culvert.Error) {
				b, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%d %v", len(b), err)
			}}))
		defer s.Close()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Connection", "upgrade")
		r.Header.Set("Upgrade", "tcp")
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); string(got) != want || err != nil {
			t.Errorf("ErrorHandler read %q of %d bytes, %v; want %q", got, len(body), err, want)
		}
	}
}
