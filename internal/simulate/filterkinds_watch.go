package simulate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// accessLogKind logs each request once.
var accessLogKind = filterKind{name: "AccessLog", make: func(g *gateway, _ FilterPlan) (culvert.Filter, error) {
	b := g.newBook("AccessLog")
	return b.around(filters.AccessLog(slog.New(b))), nil
}}

// combinedLogKind writes a line for each request.
var combinedLogKind = filterKind{name: "CombinedLog", make: func(g *gateway, _ FilterPlan) (culvert.Filter, error) {
	b := g.newBook("CombinedLog")
	return b.around(filters.CombinedLog(b)), nil
}}

// observeKind reports the beginning and the end of each request.
var observeKind = filterKind{name: "Observe", make: func(g *gateway, _ FilterPlan) (culvert.Filter, error) {
	b := g.newBook("Observe")
	return b.around(filters.Observe(b)), nil
}}

// onResponseKind calls hooks, one of which may change each byte.
var onResponseKind = filterKind{
	name: "OnResponse",
	make: func(g *gateway, p FilterPlan) (culvert.Filter, error) {
		b := g.newBook("OnResponse")
		hooks := filters.ResponseHooks{End: func(r *http.Request, s culvert.ResponseStats) { b.note(r.URL.EscapedPath(), 0) }}
		if p.A%2 == 1 {
			hooks.Body = func(r *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
				if h.Get("Content-Encoding") != "" || opensTunnel(r) {
					return nil
				}
				return &flipped{w}
			}
		}
		if p.A >= 4 {
			hooks.Header = func(_ *http.Request, _ int, h http.Header) { h.Add("X-Hooked", "1") }
		}
		return b.around(filters.OnResponse(hooks)), nil
	},
	response: func(p FilterPlan, q *hop, m *message) {
		if p.A >= 4 {
			m.acts("OnResponse adds a field")
			m.header["X-Hooked"] = map[string]string{"": "1", "1": "1, 1", "1, 1": "1, 1, 1", "1, 1, 1": "1, 1, 1, 1", "1, 1, 1, 1": "1, 1, 1, 1, 1"}[m.header["X-Hooked"]]
		}
		if p.A%2 == 1 && !m.bodyless(q) && m.coding == "" {
			m.acts("OnResponse flips bytes")
			m.flip()
		}
	},
}

// flip applies the flipping of each byte to a content.
func (m *message) flip() {
	if m.changed = true; m.told || m.body == nil || len(m.body()) > 0 {
		m.kube, m.flipped = m.flipped, m.kube // it can't be read, until it is flipped back
	}
	if before := m.matches; before != nil {
		perhaps := m.loose // an inner Compress may have encoded it, and then the hook has not seen it
		m.matches = func(plain []byte, whole bool) error {
			err := before(flip(plain), whole)
			if err != nil && perhaps && (m.coding != "" || m.decodes) && before(plain, whole) == nil {
				return nil
			}
			return err
		}
	}
	if before := m.body; before != nil {
		m.body = func() []byte { return flip(before()) }
	}
}

// flip returns p with each byte flipped.
func flip(p []byte) []byte {
	out := make([]byte, len(p))
	for i, c := range p {
		out[i] = c ^ 0x55
	}
	return out
}

// flipped writes bytes flipped.
type flipped struct{ io.Writer }

func (f *flipped) Write(p []byte) (int, error) { return f.Writer.Write(flip(p)) }

func (f *flipped) Close() error { return nil }

// book collects the records of a log.
type book struct {
	g    *gateway
	name string

	mu       sync.Mutex
	came     int
	noted    int
	started  int
	writing  bool
	statuses map[uint32][]int
}

// newBook returns an empty book, which is checked when the gateway has ended.
func (g *gateway) newBook(name string) *book {
	b := &book{g: g, name: name, statuses: map[uint32][]int{}}
	g.closers = append(g.closers, b.end)
	g.books = append(g.books, b)
	return b
}

// around counts requests.
func (b *book) around(f culvert.Filter) culvert.Filter {
	return func(next http.Handler) http.Handler {
		logged := f(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			b.came++
			b.mu.Unlock()
			logged.ServeHTTP(w, r)
		})
	}
}

// end checks that each request was logged once.
func (b *book) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noted != b.came || b.name == "Observe" && b.started != b.came {
		b.g.journal.Break("log", "%s noted %d requests of %d, and the beginning of %d", b.name, b.noted, b.came, b.started)
	}
}

// note notes a request.
func (b *book) note(uri string, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted++
	token, _ := tokenOf(uri)
	b.statuses[token] = append(b.statuses[token], status)
	if token > 0 && len(b.statuses[token]) > 1 {
		b.g.journal.Break("log", "%s noted #%d %d times", b.name, token, len(b.statuses[token]))
	}
}

// RequestStarted implements filters.Metrics.
func (b *book) RequestStarted(*http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started++
}

// RequestEnded implements filters.Metrics.
func (b *book) RequestEnded(r *http.Request, o filters.Observation) {
	b.note(r.URL.EscapedPath(), o.Status)
}

var combined = regexp.MustCompile(`^[0-9.]+ - - \[[^]]+\] "[A-Z]+ (\S+) HTTP/[0-9.]+" (\d+) \d+ "-" "[^"]*"\n$`)

// Write takes a line of a log.
func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	overlap := b.writing
	b.writing = true
	b.mu.Unlock()
	at := combined.FindSubmatch(p)
	if at == nil || overlap {
		b.g.journal.Break("log", "the line %q, beside another one: %v", p, overlap)
	} else {
		status, _ := strconv.Atoi(string(at[2]))
		b.note(string(at[1]), status)
	}
	b.mu.Lock()
	b.writing = false
	b.mu.Unlock()
	return len(p), nil
}

// Enabled implements slog.Handler.
func (b *book) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (b *book) Handle(_ context.Context, record slog.Record) error {
	var uri string
	var status int
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "uri":
			uri = a.Value.String()
		case "status":
			status = int(a.Value.Int64())
		}
		return true
	})
	b.note(uri, status)
	return nil
}

// WithAttrs implements slog.Handler.
func (b *book) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b *book) WithGroup(string) slog.Handler { return b }

// recoverKind responds if an inner handler panics.
var recoverKind = filterKind{
	name: "Recover",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		recovers := filters.Recover(slog.New(slog.DiscardHandler))
		return func(next http.Handler) http.Handler { return recovers(p.panics(next)) }, nil
	},
	request: func(p FilterPlan, q *hop) {
		switch p.panicOf(q.e.Token, q.upgrade) {
		case panicBefore:
			q.refuse(http.StatusInternalServerError)
		case panicAtHeader:
			q.may = append(q.may, http.StatusInternalServerError)
		case panicAtWrite:
			q.panics = true
			q.breaksOff(q.holds || q.delays)
		case panicBehind:
			q.breaksOff(q.holds)
		}
	},
	response: func(p FilterPlan, q *hop, m *message) {
		switch at := p.panicOf(q.e.Token, q.upgrade); {
		case at == panicAtHeader:
			m.never, m.instead = true, http.StatusInternalServerError
		case at == panicBehind:
			m.acts("Recover aborts")
			m.aborted = true // all of the content may have been sent before
		case at == panicAtWrite && (m.replaced || !m.bodyless(q) && (m.told || len(m.body()) > 0)):
			m.acts("Recover aborts")
			m.cut = true
		}
	},
}

// breaksOff records that a handler may break off a response, also an error response of the gateway's own. A filter that
// holds the response then responds with 502 in its place.
func (q *hop) breaksOff(held bool) {
	if held {
		q.may = append(q.may, http.StatusBadGateway)
	}
}

// Where the inner handler of a Recover panics.
const (
	panicBefore = 2 + iota
	panicBehind
	panicAtHeader
	panicAtWrite
)

// panicOf returns where the handler panics for a request, 0 for nowhere.
func (p FilterPlan) panicOf(token uint32, upgrade bool) int {
	if p.B < panicBefore || token == 0 || int(token)%4 != p.A%4 || upgrade && p.B != panicBefore && p.B != panicAtHeader {
		return 0
	}
	return p.B
}

var errPlanned = errors.New("panic, as planned")

// panics is a filter with a bug.
func (p FilterPlan) panics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next, token := next, tokenIn(r)
		switch p.panicOf(token, opensTunnel(r)) {
		case panicBefore:
			panic(errPlanned)
		case panicBehind:
			next.ServeHTTP(w, r)
			panic(errPlanned)
		case panicAtHeader:
			next = filters.OnResponse(filters.ResponseHooks{Header: func(*http.Request, int, http.Header) { panic(errPlanned) }})(next)
		case panicAtWrite:
			next = filters.OnResponse(filters.ResponseHooks{Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser { return panicking{} }})(next)
		}
		next.ServeHTTP(w, r)
	})
}

// panicking is a writer that panics.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic(errPlanned) }

func (panicking) Close() error { return nil }

// tokenIn returns the token of a request, 0 for a probe.
func tokenIn(r *http.Request) uint32 {
	token, _ := tokenOf(r.URL.EscapedPath())
	return token
}

// hooksPanic reports whether hooks of filters panic in the proxy's handler.
func (g *GatewayPlan) hooksPanic() bool {
	for _, f := range g.Filters {
		if filterKinds[f.Kind].name == "Recover" && f.B > panicBefore {
			return true
		}
	}
	return false
}

// opensTunnel reports whether a request is for a tunnel.
func opensTunnel(r *http.Request) bool {
	return r.Method == http.MethodConnect || r.Header.Get("Upgrade") != ""
}
