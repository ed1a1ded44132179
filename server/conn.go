package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/netloop"
)

// conn is a connection. Its goroutine reads the requests and calls the handler for one after the other.
type conn struct {
	server     *Server
	rwc        net.Conn
	tls        *tls.ConnectionState
	remoteAddr string // "" while the connection is parked
	ctx        context.Context
	accepted   time.Time
	state      atomic.Uint32 // an http.ConnState or stateHeader; StateClosed as soon as it is decided
	plain      bool          // nothing is between peek's socket and rwc
	parks      bool          // it can be parked
	lends      bool          // the handler keeps nothing of a request
	cleartext  bool          // the client speaks HTTP without TLS where TLS is spoken: its request is refused
	pipelined  bool          // the next request was received with the one before
	lineEnds   uint8         // how many bytes of line ends may be skipped before the next request
	peek       *http1.Peeker // of the socket, below TLS; nil while the connection is parked
	parked     netloop.Waiter
	tick       time.Duration // of boundIdle; 0 before the first
	idle       atomic.Int64  // by SetIdleTimeout; 0: the server's
	since      atomic.Int64  // on idleClock, when it began to wait for a request; 0 without MaxConns
	addr       netip.Addr    // what MaxConnsPerAddr counts it for; guarded by the server's mu
	placed     bool          // it has one of MaxConns places; guarded by the server's mu

	r          *bufio.Reader // nil while the connection is idle
	headerEnds time.Time     // when the header that is being read must have been received; zero: not settled yet

	// mu guards what follows, which handlers reach from any goroutine.
	mu       sync.Mutex
	current  *exchange // the one whose handler runs; nil: none
	hijacked bool
	reads    bound // failing: the handler has returned while its body was being read
	writes   bound // failing: the handler has returned while it was writing
	watch    watch
}

func newConn(s *Server, rwc net.Conn) *conn {
	c := &conn{server: s, rwc: rwc, accepted: time.Now(), lends: clientside.Returns(s.Handler)}
	c.initParking()
	return c
}

// open calls the hooks of a new connection. It reports false if one has panicked.
func (c *conn) open(ctx context.Context) (opened bool) {
	defer c.recoverHook()
	if f := c.server.ConnContext; f != nil {
		if ctx = f(ctx, c.rwc); ctx == nil {
			panic("server: ConnContext returned nil")
		}
	}
	c.ctx = ctx
	c.hook(http.StateNew)
	return true
}

// learnAddr learns the client's address. A connection with a PROXY protocol header may wait for that.
func (c *conn) learnAddr() {
	if a := c.rwc.RemoteAddr(); a != nil {
		c.remoteAddr = a.String()
	}
}

// is reports whether the connection is in a state.
func (c *conn) is(state http.ConnState) bool { return http.ConnState(c.state.Load()) == state }

// move changes the state, unless Shutdown has closed the connection meanwhile.
func (c *conn) move(from, to http.ConnState) bool {
	if !c.state.CompareAndSwap(uint32(from), uint32(to)) {
		return false
	}
	c.hook(to)
	return true
}

func (c *conn) hook(state http.ConnState) {
	if f := c.server.ConnState; f != nil {
		f(c.rwc, state)
	}
}

// stateHeader is the state of a connection within a request's header: for the hook that is StateActive.
const stateHeader = http.StateClosed + 1

// beginHeader changes the state when the first byte of a request was received.
func (c *conn) beginHeader() bool {
	for _, from := range [...]http.ConnState{http.StateIdle, http.StateNew} {
		if c.state.CompareAndSwap(uint32(from), uint32(stateHeader)) {
			c.hook(http.StateActive)
			return true
		}
	}
	return false
}

// endHeader changes the state when the header was received, or is refused.
func (c *conn) endHeader() bool {
	return c.state.CompareAndSwap(uint32(stateHeader), uint32(http.StateActive))
}

// closeIf closes a connection that is in a state in which it may be closed at any time. It reports whether it has.
func (c *conn) closeIf(state http.ConnState) bool {
	if !c.state.CompareAndSwap(uint32(state), uint32(http.StateClosed)) {
		return false
	}
	c.close()
	return true
}

// serve serves the connection.
func (c *conn) serve() {
	var err error
	defer c.end(&err)
	defer c.recoverHook()
	c.learnAddr()
	if !c.handshake() || c.choseOther() || c.serveHTTP2() || !speaksHTTP1(c.server) {
		return
	}
	c.initPeek()
	c.boundHeader(time.Now())
	c.boundReads(c.headerEnds)
	err = c.serveRequests()
}

// serveRequests serves one request after the other, until the connection is to be closed or is parked.
func (c *conn) serveRequests() error {
	for {
		x, err := c.next()
		if err != nil || !c.exchange(x) {
			return err
		}
	}
}

func (c *conn) initPeek() {
	socket := c.rwc
	t, secure := socket.(*tls.Conn)
	if secure {
		socket = t.NetConn()
	}
	c.plain = !secure
	c.peek = peekers.Get().(*http1.Peeker)
	c.peek.Init(socket)
}

var peekers = sync.Pool{New: func() any { return new(http1.Peeker) }}

// freePeeker gives the memory of peek back. No exchange is under way.
func (c *conn) freePeeker() {
	if c.peek != nil {
		c.peek.Reset()
		peekers.Put(c.peek)
		c.peek = nil
	}
}

func speaksHTTP1(s *Server) bool {
	p := s.protocols()
	return p.HTTP1()
}

// end closes the connection, unless it was hijacked or is parked.
func (c *conn) end(served *error) {
	if *served == errParked {
		return
	}
	c.freeReader()
	c.mu.Lock()
	hijacked := c.hijacked
	c.mu.Unlock()
	if hijacked {
		return
	}
	c.freePeeker()
	_ = c.rwc.Close()
	c.state.Store(uint32(http.StateClosed))
	defer c.server.forget(c)
	defer c.recoverHook()
	c.hook(http.StateClosed)
}

// handshake does that of TLS. A client that speaks HTTP without TLS gets a response in the clear: if there is an OnRefused, and
// the system shows what was received, by that.
func (c *conn) handshake() bool {
	t, ok := c.rwc.(*tls.Conn)
	if !ok {
		if t, ok := c.rwc.(interface{ ConnectionState() tls.ConnectionState }); ok {
			state := t.ConnectionState()
			c.tls = &state
		}
		return true
	}
	timeout := c.server.handshakeTimeout()
	if timeout > 0 {
		_ = t.SetDeadline(time.Now().Add(timeout))
	}
	if c.server.OnRefused != nil && speaksCleartext(t.NetConn()) {
		c.refuseCleartext(t)
		return false
	}
	if err := t.HandshakeContext(context.WithValue(c.ctx, http.LocalAddrContextKey, t.LocalAddr())); err != nil {
		reason := err.Error()
		if re, ok := err.(tls.RecordHeaderError); ok && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
			_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
			_ = re.Conn.Close()
			reason = "client sent an HTTP request to an HTTPS server"
		}
		c.server.logf("http: TLS handshake error from %s: %v", c.remoteAddr, reason)
		return false
	}
	if timeout > 0 {
		_ = t.SetDeadline(time.Time{})
	}
	state := t.ConnectionState()
	c.tls = &state
	return true
}

// choseOther reports whether the client has chosen a protocol by ALPN that is not HTTP, such as acme-tls/1, which is over with the
// handshake (RFC 8737 section 3). As with net/http, its connection serves no requests.
func (c *conn) choseOther() bool {
	if c.tls == nil {
		return false
	}
	switch c.tls.NegotiatedProtocol {
	case "", "http/1.1", "http/1.0", http2.NextProtoTLS:
		return false
	}
	return true
}

func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// next waits for a request and reads its header. The error is errParked, or the connection ends.
func (c *conn) next() (*exchange, error) {
	if err := c.awaitRequest(); err != nil {
		return nil, err
	}
	return c.readRequest()
}

// awaitRequest waits for the first byte of a request. As long as there is none, the connection has no buffer.
func (c *conn) awaitRequest() error {
	for {
		if c.r == nil || c.r.Buffered() == 0 && !c.watch.hasByte {
			c.freeReader()
			if err := c.awaitByte(); err != nil {
				return err
			}
			c.takeReader()
		}
		first, err := c.peekFirst()
		switch {
		case c.mayPark(err): // a byte has arrived in time, and is read too late
			c.boundIdle()
		case err != nil:
			return err
		case c.skipLineEnd(first): // the connection is idle still
		case c.beginHeader():
			return nil
		default:
			return net.ErrClosed
		}
	}
}

// peekFirst returns the next byte without taking it.
func (c *conn) peekFirst() (byte, error) {
	b, err := c.r.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// skipLineEnd takes the byte that peekFirst has returned, if that is a part of a line end before a request: old clients send
// one behind the body of a POST (RFC 9112 section 2.2). It reports whether it has.
func (c *conn) skipLineEnd(first byte) bool {
	if c.lineEnds == 0 || first != '\r' && first != '\n' {
		return false
	}
	c.lineEnds--
	_, _ = c.r.Discard(1)
	return true
}

// awaitByte waits until something can be read.
func (c *conn) awaitByte() error {
	c.mu.Lock()
	c.applyReadDeadline()
	c.mu.Unlock()
	if c.plain && c.peek.Waits() {
		err := c.peek.AwaitReadable()
		if c.mayPark(err) {
			return c.park()
		}
		return err
	}
	if _, err := io.ReadFull(c.rwc, c.watch.one[:]); err != nil {
		return err
	}
	c.watch.hasByte = true
	return nil
}

// boundHeader settles when the header must have been received whose time begins at start.
func (c *conn) boundHeader(start time.Time) {
	if d := c.server.headerTimeout(); d > 0 && c.headerEnds.IsZero() {
		c.headerEnds = start.Add(d)
	}
}

// AwaitRest implements http1.Waiter: the header was not received as a whole.
func (c *conn) AwaitRest() {
	c.boundHeader(time.Now())
	c.boundReads(c.headerEnds)
}

// readBuffer is the size of a connection's buffer while it serves a request.
const readBuffer = 4 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readBuffer) }}

func (c *conn) takeReader() {
	c.r = readers.Get().(*bufio.Reader)
	c.r.Reset(c)
}

// freeReader gives the buffer back. It must be empty, or the connection must end.
func (c *conn) freeReader() {
	if c.r != nil {
		c.r.Reset(nil)
		readers.Put(c.r)
		c.r = nil
	}
}

// Read reads from the client, behind the byte that the watch has read: r does. It returns that byte by itself, since it may
// be the last one that the client sends for now, and in another protocol nothing may follow.
func (c *conn) Read(p []byte) (n int, err error) {
	c.mu.Lock()
	if c.watch.hasByte && len(p) > 0 {
		defer c.mu.Unlock()
		c.watch.hasByte = false
		return copy(p, c.watch.one[:]), nil
	}
	if !c.hijacked {
		c.applyReadDeadline()
	}
	x := c.current
	c.mu.Unlock()
	n, err = c.rwc.Read(p)
	if err != nil && x != nil && !timedOut(err) {
		x.ctx.cancel(context.Canceled) // the client has left
	}
	return n, err
}

func timedOut(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// exchange has the handler respond to a request. It reports whether another one may follow.
func (c *conn) exchange(x *exchange) bool {
	var writeUntil time.Time
	if d := c.server.WriteTimeout; d > 0 {
		writeUntil = time.Now().Add(d)
	}
	c.mu.Lock()
	c.current, c.writes.until = x, writeUntil
	c.mu.Unlock()
	c.idle.Store(0)
	if !c.handle(x) || c.leave(x) {
		return false
	}
	sent := x.w.finish()
	if x.req.MultipartForm != nil {
		_ = x.req.MultipartForm.RemoveAll()
	}
	if !sent {
		c.lingerBehind(x)
		return false
	}
	return c.follow(x)
}

// follow prepares for the next request. It reports false if the connection ends with this one.
func (c *conn) follow(x *exchange) bool {
	if x.w.close || !x.body.drain() || !c.server.keepAlives() {
		c.lingerBehind(x)
		return false
	}
	x.giveBack()
	c.pipelined = c.r.Buffered() > 0
	c.boundIdle()
	c.noteIdle()
	return c.move(http.StateActive, http.StateIdle) && c.server.keepAlives()
}

// handle calls the handler. It reports false if that has panicked; one that has called runtime.Goexit ends in the same way.
func (c *conn) handle(x *exchange) (returned bool) {
	defer func() {
		if returned {
			return
		}
		if err := recover(); err != nil && err != http.ErrAbortHandler {
			c.logPanic(err)
		}
		if !c.leave(x) {
			x.w.abort()
			c.lingerBehind(x)
		}
	}()
	if x.refusal != nil {
		c.server.OnRefused(&x.w, x.refusal)
	} else {
		c.server.serveHTTP(&x.w, &x.req)
	}
	return true
}

// leave ends the use of what the handler was given. It reports whether the handler has taken the connection.
func (c *conn) leave(x *exchange) (hijacked bool) {
	c.mu.Lock()
	c.current = nil // no deadline of this handler is set from now on
	c.mu.Unlock()
	if hijacked = x.w.leave(); hijacked {
		c.r = nil // the handler's
	} else {
		c.stopWatching()
		x.body.leave()
	}
	x.ctx.cancel(context.Canceled)
	return hijacked
}

// recoverHook is deferred where a hook is called: a panic of one ends its connection, and not the process.
func (c *conn) recoverHook() {
	if err := recover(); err != nil {
		c.logPanic(err)
	}
}

func (c *conn) logPanic(err any) {
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	c.server.logf("http: panic serving %v: %v\n%s", c.remoteAddr, err, stack)
}

// The bounds of what is read behind a response, so that the client can read it: a connection that is closed with bytes
// unread is reset, and what the client has not read yet is lost (RFC 9112 section 9.6).
const lingerBytes = 64 << 20

var lingerWithin = 2 * time.Second // tests have a slow machine

// lingerBehind lingers behind the last exchange of the connection if the client has sent what nothing has read, and can be
// reached still: it may not have read this response yet, nor those of requests that it has pipelined in front.
func (c *conn) lingerBehind(x *exchange) {
	unread := !x.body.content.Whole() || c.r.Buffered() > 0 || c.watch.hasByte || !x.w.wantsClose && c.peek.Look() == http1.Bytes
	if unread && x.w.err == nil {
		c.linger()
	}
}

// linger closes the connection for writing, and reads what the client sends until it closes, within bounds.
func (c *conn) linger() {
	half, ok := c.rwc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.boundReads(time.Now().Add(lingerWithin))
	_, _ = io.CopyN(io.Discard, struct{ io.Reader }{c}, lingerBytes)
}
