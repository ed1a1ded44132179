package demo

import (
	"fmt"
	"net/http"
	"sync"
)

// gone responds with a 410 and a page without a field about caching, and counts the requests for
// each address.
type gone struct {
	mu     sync.Mutex
	visits map[string]int
}

// maxVisits bounds how many addresses are counted.
const maxVisits = 1024

func newGone() *gone { return &gone{visits: map[string]int{}} }

func (g *gone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/gone/visits" {
		g.report(w, r.URL.Query().Get("of"))
		return
	}
	n := g.visit(r.URL.RequestURI())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusGone)
	fmt.Fprintf(w, "<!doctype html><title>410 Gone</title><h1>Gone</h1><p>Requested %d times.</p>\n", n)
}

func (g *gone) visit(uri string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.visits) >= maxVisits {
		clear(g.visits)
	}
	g.visits[uri]++
	return g.visits[uri]
}

func (g *gone) report(w http.ResponseWriter, uri string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sendJSON(w, map[string]int{"visits": g.visits[uri]})
}
