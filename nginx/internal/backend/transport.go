// Package backend runs requests over protocols that are not HTTP: FastCGI, SCGI, uwsgi and memcached's. A Transport is the
// http.RoundTripper of one of them, with the connections that it keeps.
package backend

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
)

// Protocol encodes requests and decodes responses. Its methods are safe for concurrent use.
type Protocol interface {
	// Prepare returns a function that writes r with its body, which may be nil. What it has written is flushed while it waits for
	// the body. Prepare is called by RoundTrip's caller; the function may run on another goroutine.
	Prepare(r *http.Request) (write func(w *bufio.Writer) error, err error)
	// ReadResponse reads the header of the response to r. Its Body reads from b, and is closed by the Transport. It is read to its
	// end even if r is for HEAD. reusable is called when the body has ended, and reports whether the connection is at the
	// beginning of another response.
	ReadResponse(b *bufio.Reader, r *http.Request) (resp *http.Response, reusable func() bool, err error)
}

// Options configures a Transport.
type Options struct {
	// Protocol is required.
	Protocol Protocol
	// Dial makes a connection. addr is the Host of the request's URL, and ctx the request's. Required.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// ReadTimeout bounds the wait for the whole header of a response, from the end of the request on, and then that for the next
	// bytes of its body. WriteTimeout bounds the wait for the backend to accept some of the request. 0 is no bound.
	ReadTimeout, WriteTimeout time.Duration
	// MaxIdle bounds the idle connections of one address; 0 keeps none. IdleTimeout bounds how long one is idle, MaxAge
	// its age and MaxRequests its requests; 0 is no bound.
	MaxIdle             int
	IdleTimeout, MaxAge time.Duration
	MaxRequests         int
}

// Transport is an http.RoundTripper. It is safe for concurrent use by multiple goroutines.
type Transport struct {
	o Options

	mu   sync.Mutex
	idle map[string][]*conn // by address, the last used at the end
}

// New returns a Transport.
func New(o Options) *Transport { return &Transport{o: o, idle: map[string][]*conn{}} }

// RoundTrip implements http.RoundTripper. A request without a body whose kept connection has ended before a response began is sent
// once more, over a fresh one.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == http.NoBody {
		r = r.WithContext(r.Context())
		r.Body = nil
	}
	if r.Body != nil {
		r = r.WithContext(r.Context())
		r.Body = &lateBody{body: r.Body}
	}
	write, err := t.o.Protocol.Prepare(r)
	if err != nil {
		closeBody(r)
		return nil, &culvert.Error{Kind: culvert.Internal, Err: err}
	}
	c := t.kept(r.URL.Host)
	if c != nil {
		resp, err := t.exchange(c, r, write)
		if err == nil || r.Body != nil || c.received() || r.Context().Err() != nil || isTimeout(err) {
			return resp, err
		}
	}
	if c, err = t.dial(r); err != nil {
		closeBody(r)
		return nil, err
	}
	return t.exchange(c, r, write)
}

func (t *Transport) dial(r *http.Request) (*conn, error) {
	nc, err := t.o.Dial(r.Context(), r.URL.Host)
	if err != nil {
		return nil, err
	}
	return newConn(nc, t, r.URL.Host), nil
}

// exchange sends r over c and reads the header of the response.
func (t *Transport) exchange(c *conn, r *http.Request, write func(*bufio.Writer) error) (*http.Response, error) {
	c.begin()
	trace := httptrace.ContextClientTrace(r.Context())
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.nc, Reused: c.requests > 1})
	}
	stop := context.AfterFunc(r.Context(), func() { c.nc.Close() })
	x := &exchange{c: c, r: r, stop: stop, written: make(chan struct{})}
	if r.Body == nil {
		x.write(write)
	} else {
		r.Body.(*lateBody).w = c.bw
		go x.write(write)
	}
	resp, reusable, err := t.o.Protocol.ReadResponse(c.br, r)
	if err != nil {
		err = x.cause(err) // before the end has the body fail
		x.end(false)
		return nil, err
	}
	x.begun.Store(true)
	if trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	c.body.Store(true)
	resp.Request = r
	resp.Body = &body{x: x, r: resp.Body, reusable: reusable}
	return resp, nil
}

// exchange is a request and its response on a connection.
type exchange struct {
	c       *conn
	r       *http.Request
	stop    func() bool
	written chan struct{} // closed when nothing more of the request is sent
	failure error         // of sending it; behind written
	begun   atomic.Bool   // the header of the response was received
	cut     atomic.Bool   // the client's body has failed before
	once    sync.Once
}

// write sends the request.
func (x *exchange) write(request func(*bufio.Writer) error) {
	defer close(x.written)
	if x.failure = request(x.c.bw); x.failure == nil {
		x.failure = x.c.bw.Flush()
	}
	if l, ok := x.r.Body.(*lateBody); ok && l.failed && !x.begun.Load() {
		x.cut.Store(true)
		x.c.nc.Close() // or the backend would wait for the rest, or take what it has for all
	}
	closeBody(x.r)
	x.c.sent()
}

// cause returns why there is no response, which reading it has failed with.
func (x *exchange) cause(err error) error {
	if ctx := x.r.Context(); ctx.Err() != nil {
		return ctx.Err()
	}
	if x.cut.Load() {
		<-x.written
		return x.failure
	}
	if err == io.EOF {
		return errPremature
	}
	return err
}

// errPremature is the error of a connection that ends before the response's header.
var errPremature = errors.New("upstream prematurely closed connection")

// end ends the exchange. The connection is kept if it may be.
func (x *exchange) end(reusable bool) {
	x.once.Do(func() {
		running := x.stop()
		if reusable && running && x.wroteAll() {
			x.c.t.keep(x.c)
			return
		}
		x.c.nc.Close()
		closeBody(x.r) // a read of it that waits ends
	})
}

func (x *exchange) wroteAll() bool {
	select {
	case <-x.written:
		return x.failure == nil
	default:
		return false
	}
}

// body is that of a response.
type body struct {
	x        *exchange
	r        io.Reader
	reusable func() bool
	err      error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	n, b.err = b.r.Read(p)
	switch {
	case b.err == io.EOF:
		b.x.end(b.reusable())
	case b.err != nil:
		b.x.end(false)
		if ctx := b.x.r.Context(); ctx.Err() != nil {
			b.err = ctx.Err()
		}
	}
	return n, b.err
}

// Close implements io.Closer. It may be called during a Read, which it ends.
func (b *body) Close() error {
	b.x.end(false)
	return nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// flushDelay is how long what precedes a body waits for the first piece of it.
const flushDelay = time.Millisecond

// lateBody is a request's body: while it is waited for, what was written before is flushed. A small request is one write so.
type lateBody struct {
	body   io.ReadCloser
	w      *bufio.Writer
	failed bool // a read has
}

// Read implements io.Reader.
func (l *lateBody) Read(p []byte) (int, error) {
	n, err := l.read(p)
	if err != nil && err != io.EOF {
		l.failed = true
	}
	return n, err
}

func (l *lateBody) read(p []byte) (int, error) {
	if l.w.Buffered() == 0 || clientbody.Ready(l.body) {
		return l.body.Read(p)
	}
	flushed := make(chan struct{})
	timer := time.AfterFunc(flushDelay, func() {
		defer close(flushed)
		_ = l.w.Flush() // its error is that of the next write, too
	})
	n, err := l.body.Read(p)
	if !timer.Stop() {
		<-flushed
	}
	return n, err
}

// Ready implements clientbody.Receiver.
func (l *lateBody) Ready() bool { return clientbody.Ready(l.body) }

// Received implements clientbody.Receiver.
func (l *lateBody) Received() bool { return clientbody.Received(l.body) }

// Close implements io.Closer.
func (l *lateBody) Close() error { return l.body.Close() }
