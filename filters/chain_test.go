package filters_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// named returns a filter that adds its name to the header Passed.
func named(name string) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Passed", name)
			next.ServeHTTP(w, r)
		})
	}
}

func passed(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return strings.Join(w.Header()["Passed"], " ") + fmt.Sprint(" ", w.Code)
}

func TestChain(t *testing.T) {
	list := []culvert.Filter{named("a"), named("b")}
	ab := filters.NewChain(list...)
	list[0] = named("changed")
	abc, abd := ab.Append(named("c")), ab.Append(named("d"))
	teapot := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
	for _, test := range []struct {
		name, want string
		h          http.Handler
	}{
		{"left is outermost", "a b 418", ab.ThenFunc(teapot)},
		{"appended is innermost", "a b c 418", abc.ThenFunc(teapot)},
		{"Append leaves the chain as it was", "a b d 418", abd.ThenFunc(teapot)},
		{"nil is not found", "a b 404", ab.Then(nil)},
		{"a nil function too", "a b 404", ab.ThenFunc(nil)},
		{"the zero chain", " 418", filters.Chain{}.ThenFunc(teapot)},
		{"a chain in a chain", "a b a b c 418", ab.Append(abc.Then).ThenFunc(teapot)},
	} {
		if got := passed(test.h); got != test.want {
			t.Errorf("%s: passed %q, want %q", test.name, got, test.want)
		}
	}
}

// A client can't remove a field that a filter adds by naming it in Connection.
func TestChainSanitizes(t *testing.T) {
	leaktest.Check(t)
	seen := make(chan http.Header, 1)
	add := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("X-User"); got != "" {
				t.Errorf("the filter received the client's X-User %q", got)
			}
			r.Header.Set("X-User", "ann")
			next.ServeHTTP(w, r)
		})
	}
	client := wiretest.Dial(t, wiretest.Serve(t, filters.NewChain(add).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Header
	})))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: x-user, upgrade\r\nX-User: root\r\nUpgrade: h2c, websocket\r\nKeep-Alive: 5\r\n\r\n")
	client.Status(200)
	h := wiretest.Await(t, seen, "request")
	if h.Get("X-User") != "ann" || h.Get("Connection") != "Upgrade" || h.Get("Upgrade") != "websocket" || len(h) != 3 {
		t.Errorf("the handler received %v", h)
	}
}

// Trailers that were not announced are kept by filters that copy the request.
func TestChainKeepsTrailers(t *testing.T) {
	leaktest.Check(t)
	copying := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(r.Context())) })
	}
	client := wiretest.Dial(t, wiretest.Serve(t, filters.NewChain(copying).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer.Get("X-Sum"))
	})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 7\r\n\r\n")
	if _, body := client.Response("POST"); body != "7" {
		t.Errorf("trailer %q", body)
	}
}

func ExampleChain() {
	nosniff := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			next.ServeHTTP(w, r)
		})
	}
	chain := filters.NewChain(filters.AccessLog(nil), nosniff)
	handler := chain.ThenFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Header().Get("X-Content-Type-Options"), " ", w.Body)
	// Output: nosniff hello
}

func ExampleOnResponse() {
	server := filters.OnResponse(filters.ResponseHooks{
		Header: func(_ *http.Request, status int, h http.Header) {
			if status >= 500 {
				h.Set("Retry-After", "5")
			}
		},
	})
	w := httptest.NewRecorder()
	server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })).
		ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	// Output: 503 5
}

// Filters can set header fields of a request without a Header, as one that was not made by a server may be.
func TestChainWithoutAHeader(t *testing.T) {
	set := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-User", "ann")
			next.ServeHTTP(w, r)
		})
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = nil
	filters.NewChain(set).ThenFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-User") != "ann" {
			t.Errorf("header %v", r.Header)
		}
	}).ServeHTTP(httptest.NewRecorder(), r)
}
