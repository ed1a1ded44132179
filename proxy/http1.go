package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"syscall"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/http1"
)

// http1Exchange runs over connections of a pool, on the handler's goroutine: what
// http.Transport does with two more for each connection, and three hand-overs for each
// request. What it does not write itself goes through slow.
type http1Exchange struct {
	o    *Options
	pool *http1.Pool
	slow exchanger
}

func (e *http1Exchange) exchange(f *forwarding) (answered, *culvert.Error) {
	c, out := f.ownCall()
	c.body.Attach(out.Context(), out, e.o.RequestTrailer)
	if c.body.Expects() && e.pool.HeaderTimeout() == 0 {
		c.body.BoundHeader(0)
	}
	x := &f.own
	*x = ownExchange{e: e, f: f, call: c, out: out, framing: http1.FramingOf(out), buf: bufpool.Get()}
	defer x.free()
	var err error
	if x.head, err = http1.AppendHead(x.buf[:0], out, x.framing, false); err == http1.ErrOther {
		return e.slow.exchange(f) // which begins anew
	}
	defer c.body.Finish()
	if err != nil {
		return answered{}, unsendable(f.out.In, err)
	}
	fullDuplex(f)
	for fresh := false; ; fresh = true {
		answer, failure, again := x.over(fresh)
		if !again {
			return answer, failure
		}
	}
}

// fullDuplex lets the answer begin before the request has ended.
func fullDuplex(f *forwarding) {
	if f.body.Exists() {
		f.body.Client().FullDuplex()
	}
}

// ownExchange is one exchange of http1Exchange.
type ownExchange struct {
	e       *http1Exchange
	f       *forwarding
	call    *call
	out     *http.Request
	framing http1.Framing
	buf     []byte // head's memory
	head    []byte // of the request, with the body behind it if that was taken
	taken   int    // how much of head is the body
	apart   bool   // the body is sent apart from the head
	last    bool   // head says that the connection ends

	conn      *http1.Conn
	unwatch   func() bool // nil: nobody watches the client
	inPlace   bool        // the answer's fields are the client's
	upload    *upload     // nil without a body
	headUntil time.Time   // zero: nobody has waited for long
	began     bool        // the answer's first byte has come
	answer    http1.Head
	body      http1.Body
	resp      http.Response
	end       http1.AnswerFraming
}

// free gives the head's memory back, unless it is the upload's.
func (x *ownExchange) free() {
	if x.upload == nil {
		bufpool.Put(x.buf)
	}
}

// takeBody reads a body that fits beside its head before anything is sent: it goes out in one
// piece, and nobody has to stand by. What is larger, or has no length, or is yet to be asked
// for, is sent apart.
func (x *ownExchange) takeBody() error {
	length := x.framing.Length
	switch {
	case x.out.Body == nil, x.taken > 0:
		return nil
	case x.framing.Chunked, length > int64(len(x.buf)-len(x.head)), x.call.body.Expects():
		x.apart = true
		return nil
	}
	start := len(x.head)
	x.taken = int(length)
	x.head = x.head[:start+x.taken]
	if _, err := io.ReadFull(x.out.Body, x.head[start:]); err != nil {
		return err
	}
	return readsNoMore(x.out.Body)
}

// headAgain makes the head anew, for a connection that ends with this exchange or does not.
func (x *ownExchange) headAgain(last bool) (err error) {
	buf := bufpool.Get()
	body := x.head[len(x.head)-x.taken:]
	x.last = last
	if x.head, err = http1.AppendHead(buf[:0], x.out, x.framing, last); err != nil {
		return err
	}
	x.head = append(x.head, body...)
	bufpool.Put(x.buf)
	x.buf = buf
	return nil
}

// over runs the exchange over one connection. again says that it was kept too long, and that
// the request may go over another one.
func (x *ownExchange) over(fresh bool) (a answered, failure *culvert.Error, again bool) {
	ctx := x.out.Context()
	conn, err := x.e.pool.Get(ctx, x.f.lease.ConnAddr(), fresh)
	if err != nil {
		return a, classify(ctx, err, x.call), false
	}
	if x.f.record != nil {
		x.f.record.Connected(time.Now())
	}
	x.conn, x.unwatch = conn, nil
	kept := false
	defer func() {
		if !kept { // a hook may have panicked
			x.rest()
			conn.Close()
		}
	}()
	if conn.Last != x.last {
		if err = x.headAgain(conn.Last); err != nil {
			return a, unsendable(x.f.out.In, err), false
		}
	}
	taken := x.taken
	if err := x.takeBody(); err != nil {
		return answered{sent: x.call.body.Sent()}, classify(ctx, err, x.call), false
	}
	if x.taken > taken && !conn.Quiet() { // the target did not wait for the client
		return a, nil, true
	}
	wrote, err := x.send()
	if err == nil {
		err = x.receive()
	}
	if err == nil && !x.body.Buffered() {
		err = ctx.Err() // nothing has watched that yet, maybe: what follows the header would be cut
	}
	if err != nil {
		x.forget()
		if x.mayGoAgain(err, wrote) {
			return a, nil, true
		}
		x.f.stale = conn.Reused && !x.began
		return answered{sent: x.call.body.Sent()}, x.failure(err), false
	}
	a = x.f.arrived(x.answer.Status)
	if x.f.retryStatus(x.answer.Status) && x.f.leaseInstead(&x.call.body) {
		x.forget()
		a.dropped, a.sent = true, x.call.body.Sent()
		kept = x.keep()
		return a, nil, false
	}
	if !x.body.Buffered() {
		x.watch()
		conn.SetReadTimeout(x.e.o.BodyTimeout)
	}
	a.received, err = x.f.relay(x.call, &x.resp, x.inPlace)
	a.sent = x.call.body.Sent()
	if err != nil {
		return a, refineOwn(ctx, errs.As(err), x.call), false
	}
	kept = x.keep()
	return a, nil, false
}

// patience is how long an exchange waits for the target to accept its request, and for the response, before it looks
// whether the client is still there. Most come sooner, and to be called when a client leaves costs more than
// such an exchange. Since times of reads are kept to a quarter it is ten milliseconds at most (filters.Timeout).
const patience = 8 * time.Millisecond

// watch makes reads and writes fail when the client has gone.
func (x *ownExchange) watch() {
	if x.unwatch == nil {
		x.unwatch = context.AfterFunc(x.out.Context(), x.conn.Interrupt)
	}
}

// rest ends watch. It is false if the client has gone: the connection can't be used again then.
func (x *ownExchange) rest() bool { return x.unwatch == nil || x.unwatch() }

// atOnce is how many bytes of a request a connection takes without a wait for the target: nothing else is on its way
// over a connection that is fresh or idle, and no system gives a socket less room.
const atOnce = 4 << 10

// send sends the head, and begins to send the body. wrote says whether anything went out.
func (x *ownExchange) send() (wrote bool, err error) {
	if x.apart {
		x.watch()
		x.f.held = true // by the upload
		x.upload = startUpload(x)
		return true, nil
	}
	n := 0
	if len(x.head) > atOnce {
		if n, err = x.conn.WriteWithin(x.head, patience); err != nil || n == len(x.head) {
			return n > 0, err
		}
		x.watch()
	}
	m, err := x.conn.Write(x.head[n:])
	return n+m > 0, err
}

// receive reads the answer's head, behind interim ones.
func (x *ownExchange) receive() error {
	room := x.e.pool.MaxHead()
	x.began, x.headUntil = false, time.Time{}
	for {
		if err := x.await(); err != nil {
			return err
		}
		fields := x.fields()
		if err := x.answer.Read(x.conn, fields, &room, x); err != nil {
			return err
		}
		x.upload.answered(x.answer.Status)
		if s := x.answer.Status; s < 100 || s > 199 || s == http.StatusSwitchingProtocols {
			break
		}
		if _, err := x.answer.Frame(x.out.Method); err != nil {
			return err
		}
		if x.inPlace {
			fields = maps.Clone(fields)
			x.forget()
		}
		if x.upload.runs() {
			x.headUntil = time.Time{} // the final header may come behind the whole body
		}
		begun := time.Now()
		x.call.body.InterimReceived()
		x.call.interim.relay(x.answer.Status, textproto.MIMEHeader(fields))
		if !x.headUntil.IsZero() { // the time of the client is not the target's
			x.headUntil = x.headUntil.Add(time.Since(begun))
		}
	}
	if x.answer.Status < 200 || x.answer.Status > 999 {
		return fmt.Errorf("status %03d", x.answer.Status)
	}
	x.call.body.HeaderReceived()
	return x.frame()
}

// await waits for the next byte of the answer.
func (x *ownExchange) await() error {
	timeout := x.e.pool.HeaderTimeout()
	short := x.unwatch == nil && (timeout == 0 || timeout > patience)
	switch {
	case short:
		x.conn.SetReadTimeout(patience)
	default:
		x.limitWait(false)
	}
	_, err := x.conn.R.Peek(1)
	if err != nil && short && isTimeout(err) {
		x.watch()
		x.limitWait(false)
		_, err = x.conn.R.Peek(1)
	}
	if err == nil && !x.began {
		x.firstByte()
	}
	return err
}

// Wait prepares for a wait that may be long: what is there of the header section is not all.
func (x *ownExchange) Wait() {
	x.watch()
	x.limitWait(true)
}

// limitWait gives the next read of the response's header what is left of its time. While a body is
// still sent there is none, but for the rest of a header section that has begun.
func (x *ownExchange) limitWait(begun bool) {
	u := x.upload
	if u == nil {
		x.conn.SetReadTimeout(x.timeForHead())
		return
	}
	u.mu.Lock() // or the end of the upload would not be noticed
	defer u.mu.Unlock()
	switch {
	case !u.until.IsZero():
		if x.headUntil.IsZero() || u.until.Before(x.headUntil) {
			x.headUntil = u.until
		}
		x.conn.SetReadTimeout(max(time.Until(x.headUntil), time.Nanosecond))
	case begun:
		x.conn.SetReadTimeout(x.timeForHead())
	default:
		x.conn.SetReadTimeout(0)
	}
}

// timeForHead is what is left of the time for the response's header, which is one for all of its
// pieces and for interim responses before it; 0 is no bound.
func (x *ownExchange) timeForHead() time.Duration {
	timeout := x.e.pool.HeaderTimeout()
	switch {
	case timeout == 0:
		return 0
	case x.headUntil.IsZero():
		x.headUntil = time.Now().Add(timeout)
		return timeout
	}
	return max(time.Until(x.headUntil), time.Nanosecond)
}

// fields is where the answer's fields go. Where no hook looks at them before the client does,
// and none are there yet, that is the client's response itself. Where the upload may send the client
// a 100, which takes what is there out of the way, it is not.
func (x *ownExchange) fields() http.Header {
	if x.inPlace = !x.call.body.Expects(); !x.inPlace {
		return make(http.Header, 8)
	}
	h := x.f.w.Header()
	if x.inPlace = len(h) == 0 && x.f.p.o.ModifyResponse == nil; x.inPlace {
		return h
	}
	return make(http.Header, 8)
}

// forget takes the fields of an answer that the client does not get out of its own.
func (x *ownExchange) forget() {
	if x.inPlace {
		clear(x.f.w.Header())
	}
}

func (x *ownExchange) firstByte() {
	x.began = true
	x.call.body.FirstByte()
}

// frame finds out where the answer ends, and makes the *http.Response that relaying takes.
func (x *ownExchange) frame() (err error) {
	h := &x.answer
	if x.end, err = h.Frame(x.out.Method); err != nil {
		return err
	}
	var trailer http.Header
	if x.end.Chunked {
		if trailer, err = h.Trailers(); err != nil {
			return err
		}
	}
	length := x.end.Length
	if h.Status == http.StatusNoContent || h.Status == http.StatusNotModified {
		length = 0
	}
	var got func(http.Header) error
	if x.end.Chunked {
		got = x.gotTrailers
	}
	x.body.Start(x.conn, x.end, got)
	x.resp = http.Response{StatusCode: h.Status, ProtoMajor: 1, ProtoMinor: h.Minor, Header: h.Fields, Body: &x.body, ContentLength: length, Trailer: trailer, Request: x.out}
	return nil
}

// gotTrailers takes the trailers that have come behind the body.
func (x *ownExchange) gotTrailers(fields http.Header) error {
	if x.resp.Trailer == nil {
		x.resp.Trailer = fields
		return nil
	}
	for name, values := range fields {
		x.resp.Trailer[name] = values
	}
	return nil
}

// keep gives the connection back, if nothing is left on it and nobody uses it any more.
func (x *ownExchange) keep() bool {
	if !x.body.Whole() || x.end.Close || x.out.Close || !x.upload.finished() || !x.rest() || !x.conn.Clean() {
		return false
	}
	x.conn.Keep()
	return true
}

// mayGoAgain reports whether the failure may be that of a connection that was kept too long, on
// which the target has seen nothing, or what it may see again (RFC 9110 section 9.2.1).
func (x *ownExchange) mayGoAgain(err error, wrote bool) bool {
	if !x.conn.Reused || x.began || x.apart || x.out.Context().Err() != nil || !brokenOff(err) {
		return false
	}
	return !wrote || x.taken == 0 && repeatsOf(x.out) == repeatsSafe
}

func brokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failure is the typed error of an exchange that has no answer.
func (x *ownExchange) failure(err error) *culvert.Error {
	if e := x.upload.failed(); e != nil {
		err = e // the answer's failure follows from it
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return classify(x.out.Context(), err, x.call)
}

// refineOwn tells the timeouts of a body from other failures of it.
func refineOwn(ctx context.Context, e *culvert.Error, c *call) *culvert.Error {
	if e != nil && e.Kind == culvert.BodyBroken && isTimeout(e.Err) && ctx.Err() == nil && c.source.Failure() == nil {
		e.Kind, e.Err = culvert.Timeout, errBodyStalled
	}
	return refine(ctx, e, c)
}
