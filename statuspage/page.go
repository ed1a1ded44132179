// Package statuspage shows the state of a gateway: groups and their targets, health and its reason, rates, and open
// tunnels. It is one http.Handler, a Page, which any program can mount at a path of its choice:
//
//	groups := slices.Values([]statuspage.Upstream{app, api})
//	page, err := statuspage.New(statuspage.Options{Groups: groups, Tunnels: registry})
//	mux.Handle("/status", page)
//	handler := filters.NewChain(filters.Observe(page)).Then(mux) // for the rates
//
// The page is served without a query; "?json" is the Snapshot as JSON, and "?events" the page's content as server-sent
// events (WHATWG HTML, section 9.2), by which it is kept up to date.
//
// # Security
//
// The page shows the addresses of targets and clients, and the texts of errors: mount it where operators alone can
// reach it, or behind a filter that authenticates them. It changes nothing unless Options.Authorize permits that. All
// values are escaped, and a Content-Security-Policy forbids everything but the page's own script and style.
package statuspage

import (
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Options configures a Page. The zero value shows no groups and no tunnels.
type Options struct {
	// Title is the page's heading; "" means "culvert".
	Title string
	// Groups are the groups that are shown, in their order: slices.Values makes them of a slice. It is called for each
	// Snapshot, and must be safe for concurrent use. nil means none. Groups of equal name and scheme are drained
	// together.
	Groups iter.Seq[Upstream]
	// Tunnels are the open tunnels. nil means that none are shown.
	Tunnels *wsupgrade.Registry
	// Authorize, if not nil, reports whether the client of a request may drain targets, put them back and close
	// tunnels. It is called before each change, and for each request for the page, which has buttons if it returns
	// true. It must be safe for concurrent use. nil means that no client may.
	//
	// Requests that a browser sends for a page of another origin are refused before it is called
	// (http.CrossOriginProtection). That does not help against DNS rebinding, where a foreign page makes its own name
	// resolve to this server: an Authorize that goes by the client's address alone should compare r.Host with the
	// server's names, too.
	Authorize func(*http.Request) bool
	// Interval is the time between two events of a stream; 0 means one second.
	Interval time.Duration
	// MaxStreams is how many streams of events there may be at a time; 0 means 32. More are refused (503).
	MaxStreams int
}

// Upstream is what is shown as a group: an *upstream.Group, or an *upstream.Dynamic, whose targets can't be drained.
//
// Its methods are called for each state that is shown, and must be safe for concurrent use.
type Upstream interface {
	// Name is what the group is shown as. A target is drained in the first group that has the name and the scheme.
	Name() string
	// Scheme is "http" or "https".
	Scheme() string
	// Targets yields the state of each target. The page shows the first 1000.
	Targets() iter.Seq[upstream.Status]
	// InFlight is the number of requests and tunnels, those that wait included.
	InFlight() int
	// Waiting is the number of requests that wait for a target.
	Waiting() int
}

// drainer is an Upstream whose targets can be drained.
type drainer interface {
	SetDrained(addr string, drained bool) error
}

// Page is the handler. It is also the filters.Metrics that counts requests for it. It is safe for concurrent use by
// multiple goroutines, and starts none.
type Page struct {
	o       Options
	started time.Time
	counts  counts
	streams atomic.Int64
	closed  chan struct{}
	close   sync.Once

	mu   sync.Mutex // guards what follows
	last view
}

// writeTimeout is how long a client may take to accept a piece of a response.
const writeTimeout = 10 * time.Second

// New returns a Page. It returns an error if an option is negative.
func New(o Options) (*Page, error) {
	if o.Interval < 0 || o.MaxStreams < 0 {
		return nil, errors.New("statuspage: negative Interval or MaxStreams")
	}
	if o.Title == "" {
		o.Title = "culvert"
	}
	if o.Groups == nil {
		o.Groups = func(func(Upstream) bool) {}
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 32
	}
	return &Page{o: o, started: time.Now(), counts: counts{windows: map[subject]*window{}}, closed: make(chan struct{})}, nil
}

// Close ends all streams, and refuses new ones (503); everything else is served as before. http.Server.Shutdown waits
// for streams: give it Close with RegisterOnShutdown. It may be called more than once.
func (p *Page) Close() { p.close.Do(func() { close(p.closed) }) }

// ServeHTTP implements http.Handler. The path of the request does not matter.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := deadline.Bound(w, r, writeTimeout)
	defer b.Leave()
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		p.show(b, r)
	case http.MethodPost:
		p.change(b, r)
	default:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(b, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// show serves what the query names.
func (p *Page) show(w *deadline.Bounded, r *http.Request) {
	switch r.URL.RawQuery {
	case "json":
		content, err := json.Marshal(p.Snapshot())
		send(w, "application/json", content, err)
	case "events":
		p.stream(w, r)
	case "script":
		send(w, "text/javascript; charset=utf-8", script, nil)
	case "style":
		send(w, "text/css; charset=utf-8", style, nil)
	default:
		content, err := p.page(p.authorized(r))
		send(w, "text/html; charset=utf-8", content, err)
	}
}

func (p *Page) authorized(r *http.Request) bool { return p.o.Authorize != nil && p.o.Authorize(r) }

func send(w http.ResponseWriter, contentType string, content []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // a disconnected client needs no response
}
