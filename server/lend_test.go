package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/wiretest"
)

func init() {
	bufpool.Poison = true
	clientside.RegisterReturner(func(returning) bool { return true })
}

// returning is a handler that keeps nothing, as package server believes.
type returning http.HandlerFunc

func (h returning) ServeHTTP(w http.ResponseWriter, r *http.Request) { h(w, r) }

// What a handler was given is used again only if the handler is of this module and nothing can hold it.
func TestUsedAgain(t *testing.T) {
	type function = func(http.ResponseWriter, *http.Request)
	own := func(f function) http.Handler { return returning(f) }
	const get, post = "GET / HTTP/1.1\r\nHost: a\r\nField: value\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nField: value\r\nContent-Length: 4\r\n\r\nbody"
	for name, test := range map[string]struct {
		of      func(function) http.Handler
		request string
		do      function
		again   bool
	}{
		"of a handler of this module": {own, get, func(http.ResponseWriter, *http.Request) {}, true},
		"of any handler":              {func(f function) http.Handler { return http.HandlerFunc(f) }, get, func(http.ResponseWriter, *http.Request) {}, false},
		"held":                        {own, get, func(w http.ResponseWriter, _ *http.Request) { clientside.Hold(w) }, false},
		"waited for":                  {own, get, func(_ http.ResponseWriter, r *http.Request) { r.Context().Done() }, false},
		"called after": {own, get, func(_ http.ResponseWriter, r *http.Request) {
			context.AfterFunc(r.Context(), func() {})()
		}, false},
		"derived from": {own, get, func(_ http.ResponseWriter, r *http.Request) {
			_, cancel := context.WithCancel(r.Context())
			cancel()
		}, false},
		"with a body":      {own, post, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }, false},
		"with one unread":  {own, post, func(http.ResponseWriter, *http.Request) {}, false},
		"with many fields": {own, strings.Replace(get, "Field", strings.Repeat("F: f\r\n", 3)+manyFields()+"Field", 1), func(http.ResponseWriter, *http.Request) {}, false},
		"with many fields of the response": {own, get, func(w http.ResponseWriter, _ *http.Request) {
			for i := range mostFields {
				w.Header()["F"+strings.Repeat("f", i)] = []string{"f"}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			requests, headers := make(chan *http.Request, 2), make(chan http.Header, 2)
			c := dialRaw(t, start(t, &Server{Handler: test.of(func(w http.ResponseWriter, r *http.Request) {
				requests <- r
				headers <- w.Header()
				w.Header()["Reply"] = []string{"value"}
				test.do(w, r)
			})}))
			for range 2 { // the second one is received behind the end of the first
				if _, err := io.WriteString(c.conn, test.request); err != nil {
					t.Fatal(err)
				}
				if _, err := c.conn.Read(c.buf[:]); err != nil {
					t.Fatal(err)
				}
			}
			r, h := wiretest.Await(t, requests, "first request"), wiretest.Await(t, headers, "its header")
			wiretest.Await(t, requests, "second request")
			again := r.Method == "POISONED" && r.Header.Get("Field") == "" && h.Get("Reply") == ""
			kept := strings.HasPrefix(test.request, r.Method+" ") && r.Header.Get("Field") == "value" && h.Get("Reply") == "value"
			if again != test.again || kept == test.again {
				t.Errorf("used again: %v; kept: %v: %v, %v", again, kept, r, h)
			}
		})
	}
}

// manyFields are more than are kept for another request.
func manyFields() string {
	var b strings.Builder
	for i := range mostFields {
		b.WriteString("F" + strings.Repeat("f", i) + ": f\r\n")
	}
	return b.String()
}
