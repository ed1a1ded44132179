package filters

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/gate"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/random"
)

// MirrorOptions configures a Mirror. Times are as package culvert says: 0 is the default, a negative
// bound is none.
type MirrorOptions struct {
	// To is the handler of the copies, a proxy to another group for instance. Its
	// responses are discarded, and its panics are logged with slog.Default(). Required.
	To http.Handler
	// Context, if not nil, returns the context of a copy. It is called with a context that
	// carries what RealIP has found out about the client, and with the original request,
	// whose context must not be used: it ends with the original. Context is called
	// before the next handler. nil means the context that Context would be called with.
	Context func(copy context.Context, original *http.Request) context.Context
	// Share is the share of the requests that are copied, from 0 to 1; 0 means all.
	Share float64
	// MaxBody is the length of the longest body that is copied, in bytes; 0 means 64 KiB.
	// A request with a longer body is not copied.
	MaxBody int
	// MaxInFlight bounds the copies that run at a time; 0 means 64. A request beyond that
	// is not copied, so that the original never waits for a copy.
	MaxInFlight int
	// Upgrades has upgrades and CONNECT copied, too. Their copies open no tunnel: they are without
	// Upgrade and Connection, and a copy of CONNECT is a GET without a body. false means that
	// such a request is not copied: a client that sends an Upgrade decides so that there is no copy.
	Upgrades bool
	// Timeout bounds the time of a copy; 0 means 30 seconds.
	Timeout time.Duration
}

// Mirror sends copies of requests to a second handler, on goroutines of its own. The copy of
// a request without a body is sent at once, any other one when the next handler has read
// the original's body to its end. Upgrades and CONNECT are copied only with
// MirrorOptions.Upgrades. A Mirror is safe for concurrent use, and must be closed.
type Mirror struct {
	o       MirrorOptions
	running gate.Gate
	dropped atomic.Int64
	ctx     context.Context
	cancel  context.CancelFunc
}

// NewMirror returns a Mirror with the options. It returns an error if To is nil or another
// option is out of range.
func NewMirror(o MirrorOptions) (*Mirror, error) {
	if o.To == nil {
		return nil, errors.New("filters: MirrorOptions.To is nil")
	}
	if !(o.Share >= 0 && o.Share <= 1) || o.MaxBody < 0 || o.MaxInFlight < 0 {
		return nil, errors.New("filters: Mirror: an option is out of range")
	}
	if o.Share == 0 {
		o.Share = 1
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 10
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 64
	}
	o.Timeout = bound.OrDefault(o.Timeout, 30*time.Second)
	m := &Mirror{o: o}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// Dropped returns how many requests were not copied because too many copies were running,
// the Mirror was closed, or the body was too long or not read to its end.
func (m *Mirror) Dropped() int64 { return m.dropped.Load() }

// Close starts no more copies and waits until those that run have ended. If ctx ends first,
// it cancels the copies that are left, waits for them and returns ctx's error.
func (m *Mirror) Close(ctx context.Context) error {
	err := m.running.Drain(ctx)
	m.cancel()
	if err != nil {
		_ = m.running.Drain(context.Background()) // the copies are cancelled, so this does not take long
	}
	return err
}

// Filter is a Filter that copies the requests.
func (m *Mirror) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnel := r.Header["Upgrade"] != nil || r.Method == http.MethodConnect
		if tunnel && !m.o.Upgrades || m.o.Share < 1 && random.Float64() >= m.o.Share {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodConnect || r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			m.send(m.clone(r), nil)
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength > int64(m.o.MaxBody) {
			m.dropped.Add(1)
			next.ServeHTTP(w, r)
			return
		}
		c := &copiedBody{ReadCloser: r.Body, m: m, copy: m.clone(r)}
		original := *r
		original.Body = c
		defer c.giveUpUnread()
		next.ServeHTTP(w, &original)
	})
}

// clone returns a copy of r with a context of the mirror's own: a copy may outlive its
// original, and must not write into its Result. The client's Info is kept.
func (m *Mirror) clone(r *http.Request) *http.Request {
	ctx := m.ctx
	if i := client.From(r.Context()); i != nil {
		ctx = client.With(ctx, i)
	}
	if m.o.Context != nil {
		ctx = m.o.Context(ctx, r)
	}
	c := r.Clone(ctx)
	if r.Header["Upgrade"] != nil || r.Method == http.MethodConnect {
		withoutTunnel(c)
	}
	return c
}

// withoutTunnel turns a request for a tunnel, of which r is a copy, into one for a response.
func withoutTunnel(r *http.Request) {
	delete(r.Header, "Upgrade")
	delete(r.Header, "Connection")
	delete(r.Header, ":protocol")
	if r.Method == http.MethodConnect {
		r.Method = http.MethodGet
		delete(r.Header, "Content-Length")
	}
}

// send runs a copy on a goroutine of its own, unless too many are running or m is closed.
func (m *Mirror) send(r *http.Request, body []byte) {
	n, open := m.running.Enter()
	if !open {
		m.dropped.Add(1)
		return
	}
	if n > int64(m.o.MaxInFlight) {
		m.running.Leave()
		m.dropped.Add(1)
		return
	}
	go func() {
		defer m.running.Leave()
		defer panics.Contain(nil, "filters.MirrorOptions.To") // no server recovers from it here
		ctx, cancel := context.WithTimeout(r.Context(), m.o.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.NoBody
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.ContentLength, r.TransferEncoding, r.Trailer = int64(len(body)), nil, nil
		delete(r.Header, "Expect")
		m.o.To.ServeHTTP(&discardWriter{header: http.Header{}}, r)
	}()
}

// copiedBody is the original's body. It keeps what is read of it, and sends the copy at its end.
type copiedBody struct {
	io.ReadCloser
	m    *Mirror
	copy *http.Request
	mu   sync.Mutex
	kept []byte
	done bool // the copy was sent or given up
}

func (c *copiedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return n, err
	}
	if len(c.kept)+n > c.m.o.MaxBody {
		c.giveUp()
		return n, err
	}
	c.kept = append(c.kept, p[:n]...)
	if err == io.EOF {
		c.done = true
		c.m.send(c.copy, c.kept)
	}
	return n, err
}

// giveUpUnread gives the copy up if the original's handler has returned without reading its body to the end.
func (c *copiedBody) giveUpUnread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.giveUp()
	}
}

// giveUp counts the copy as dropped. The caller holds c.mu.
func (c *copiedBody) giveUp() {
	c.done, c.kept = true, nil
	c.m.dropped.Add(1)
}

// discardWriter is a ResponseWriter that discards the response.
type discardWriter struct{ header http.Header }

func (w *discardWriter) Header() http.Header { return w.header }

func (w *discardWriter) WriteHeader(int) {}

func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
