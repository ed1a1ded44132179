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

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/gate"
	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/internal/random"
)

// MirrorOptions configures a Mirror.
type MirrorOptions struct {
	// To gets the copies, a proxy to another group for instance. What it answers
	// is thrown away, and a panic of it is logged with slog.Default(). Required.
	To http.Handler
	// Context gives a copy's context what To needs to know of the original, whose own
	// context ends with it; nil gives it the client's address alone. It is called
	// before the original goes on.
	Context func(copy context.Context, original *http.Request) context.Context
	// Share is the part of the requests that is copied; 0 means all.
	Share float64
	// MaxBody is the longest body that is copied, in bytes; 0 means 64 KiB. A
	// request with a longer one is not copied.
	MaxBody int
	// MaxInFlight bounds the copies that run at a time; 0 means 64. What comes
	// above is not copied: the original is never slowed down.
	MaxInFlight int
	// Timeout bounds a copy; 0 means 30 seconds.
	Timeout time.Duration
}

// Mirror sends copies of requests to a second handler, after the original's body
// has been read, beside its answer. Upgrades are not copied. Close it.
type Mirror struct {
	o       MirrorOptions
	running gate.Gate
	dropped atomic.Int64
	ctx     context.Context
	end     context.CancelFunc
}

// NewMirror checks the options and returns the mirror.
func NewMirror(o MirrorOptions) (*Mirror, error) {
	if o.To == nil {
		return nil, errors.New("filters: MirrorOptions.To is nil")
	}
	if !(o.Share >= 0 && o.Share <= 1) || o.MaxBody < 0 || o.MaxInFlight < 0 || o.Timeout < 0 {
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
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	m := &Mirror{o: o}
	m.ctx, m.end = context.WithCancel(context.Background())
	return m, nil
}

// Dropped returns how many requests were not copied because there were too many,
// or because their body was too long or not read to its end.
func (m *Mirror) Dropped() int64 { return m.dropped.Load() }

// Close begins no more copies, lets those that run end until ctx ends, and cancels
// the rest. It returns ctx's error if there was a rest.
func (m *Mirror) Close(ctx context.Context) error {
	err := m.running.Drain(ctx)
	m.end()
	if err != nil {
		_ = m.running.Drain(context.Background()) // cancelled, so it will not take long
	}
	return err
}

// Filter is the Filter that copies.
func (m *Mirror) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Upgrade"] != nil || r.Method == http.MethodConnect || m.o.Share < 1 && random.Float64() >= m.o.Share {
			next.ServeHTTP(w, r)
			return
		}
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
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
		defer c.unread()
		next.ServeHTTP(w, &original)
	})
}

// clone copies r with a context of the mirror's own: a copy outlives its original,
// and must not write into its record. Who the client is goes with it.
func (m *Mirror) clone(r *http.Request) *http.Request {
	ctx := m.ctx
	if i := client.From(r.Context()); i != nil {
		ctx = client.With(ctx, i)
	}
	if m.o.Context != nil {
		ctx = m.o.Context(ctx, r)
	}
	return r.Clone(ctx)
}

// send runs a copy, if there may be one more.
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
		defer panics.Contain(nil, "filters.MirrorOptions.To") // the original's handler may have returned
		ctx, cancel := context.WithTimeout(r.Context(), m.o.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.NoBody
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.ContentLength, r.TransferEncoding, r.Trailer = int64(len(body)), nil, nil
		delete(r.Header, "Expect")
		m.o.To.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}()
}

// copiedBody keeps what the original reads.
type copiedBody struct {
	io.ReadCloser
	m    *Mirror
	copy *http.Request
	mu   sync.Mutex
	kept []byte
	done bool // sent or given up
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

// unread gives the copy up if the original has not read its body to the end.
func (c *copiedBody) unread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.giveUp()
	}
}

func (c *copiedBody) giveUp() {
	c.done, c.kept = true, nil
	c.m.dropped.Add(1)
}

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (w *nowhere) Header() http.Header { return w.header }

func (w *nowhere) WriteHeader(int) {}

func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }
