package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// Prepare makes the header of the request. It fails with ErrOther if net/http's transport must send it, and with
// another error if it can't be sent at all.
func (c *Call) Prepare() (err error) {
	c.framing = framingOf(c.Request)
	c.buf = bufpool.Get()
	if c.sent, err = c.appendHeader(c.buf[:0], false); err != nil {
		c.freeBuffer()
	}
	return err
}

// freeBuffer gives the memory of what is sent back, unless it is the upload's.
func (c *Call) freeBuffer() {
	bufpool.Put(c.buf)
	c.buf, c.sent = nil, nil
}

// Do sends the request of c, which was prepared, and returns the final response, whose Body is read from the connection.
// Call Release or Close behind it. It runs on the caller's goroutine, and starts another one only for a body that is not
// sent in one piece with its header. The error is an *Error.
func (p *Pool) Do(c *Call) (resp *http.Response, err error) {
	c.pool = p
	if c.Hooks == nil {
		c.Hooks = noHooks{}
	}
	defer func() {
		c.freeBuffer()
		if resp == nil { // also where a hook panics
			c.Close()
		}
	}()
	addr, err := p.o.Addr(c.Request)
	if err != nil {
		return nil, &Error{Err: err}
	}
	for fresh := false; ; fresh = true {
		err := c.attempt(addr, fresh)
		if err == nil {
			return &c.resp, nil
		}
		if err != errAgain {
			return nil, err
		}
		c.Close()
	}
}

// errAgain is the error of an attempt behind which the request may be sent over a fresh connection.
var errAgain = errors.New("a kept connection has ended")

// attempt sends the request over one connection and reads the header of its response.
func (c *Call) attempt(addr Addr, fresh bool) error {
	if err := c.connect(addr, fresh); err != nil {
		return &Error{Err: err}
	}
	read, err := c.readInline()
	switch {
	case err != nil:
		return &Error{Err: err}
	case read && !c.conn.silent(): // the target did not wait for the client
		return errAgain
	}
	wrote, err := c.send()
	if err == nil {
		err = c.receive()
	}
	if err == nil {
		err = c.startBody()
	}
	switch {
	case err == nil:
		return nil
	case c.mayRepeat(err, wrote):
		err = errAgain
	default:
		err = &Error{Stale: c.conn.Reused && !c.began, Err: c.cause(err)}
	}
	clear(c.Header)
	return err
}

// connect gets a connection, and makes the header of the request anew if that differs for it.
func (c *Call) connect(addr Addr, fresh bool) (err error) {
	if c.conn, err = c.pool.get(c.Request.Context(), addr, fresh, c.Hooks.Dialling); err != nil {
		return err
	}
	c.unwatch, c.late = nil, false
	c.sentBefore, c.receivedBefore = c.conn.sent.Load(), c.conn.received.Load()
	c.Hooks.Connected()
	if c.conn.Last == c.closes {
		return nil
	}
	return c.rewriteHeader(c.conn.Last)
}

// rewriteHeader makes the header anew, for a connection that ends with this exchange or does not.
func (c *Call) rewriteHeader(closes bool) error {
	buf := bufpool.Get()
	sent, err := c.appendHeader(buf[:0], closes)
	sent = append(sent, c.sent[len(c.sent)-c.inline:]...)
	c.freeBuffer()
	c.buf, c.sent, c.closes = buf, sent, closes
	return err
}

// streamed reports whether the body is sent by an upload: it does not fit beside its header, or has no length, or is to
// be read when the header was sent.
func (c *Call) streamed() bool {
	return c.Request.Body != nil && c.inline == 0 &&
		(c.Separate || c.framing.chunked || c.framing.length > int64(len(c.buf)-len(c.sent)))
}

// readInline reads a body that is not streamed, if it was not read yet, to be sent with the header. It reports whether
// it has.
func (c *Call) readInline() (bool, error) {
	if c.Request.Body == nil || c.inline > 0 || c.streamed() {
		return false, nil
	}
	start := len(c.sent)
	c.inline = int(c.framing.length)
	c.sent = c.sent[:start+c.inline]
	if _, err := io.ReadFull(c.Request.Body, c.sent[start:]); err != nil {
		return false, err
	}
	return true, readEnd(c.Request.Body)
}

// patience is how long an exchange waits for the target to accept its request, and for the response, before it watches
// whether the client is still there. Most take less, and to be called when a client leaves costs more than
// such an exchange. Since times of reads are kept to a quarter it is ten milliseconds at most (filters.Timeout).
const patience = 8 * time.Millisecond

// patient reports whether the call waits for a while before it watches the client.
func (c *Call) patient() bool {
	timeout := c.pool.o.HeaderTimeout
	return c.unwatch == nil && (timeout == 0 || timeout > patience)
}

// watch makes reads and writes fail when the context of the request has ended.
func (c *Call) watch() {
	if c.unwatch == nil {
		c.unwatch = context.AfterFunc(c.Request.Context(), c.conn.Interrupt)
	}
}

// stopWatching ends watch. It reports false if the context has ended: the connection can't be used again then.
func (c *Call) stopWatching() bool { return c.unwatch == nil || c.unwatch() }

// atOnce is how many bytes of a request a connection takes without a wait for the target: nothing else is on its way
// over a connection that is fresh or idle, and no system gives a socket less room.
const atOnce = 4 << 10

// send sends the header with an inline body, or starts an upload. wrote reports whether anything was sent.
func (c *Call) send() (wrote bool, err error) {
	if c.streamed() {
		c.watch()
		c.Hooks.Streaming()
		c.startUpload()
		return true, nil
	}
	n := 0
	if c.patient() {
		c.conn.SetReadTimeout(patience)
		if n, c.late = c.conn.writeAndAwait(c.sent); n == len(c.sent) {
			return true, nil
		}
	}
	if len(c.sent) > atOnce {
		m, err := c.conn.WriteWithin(c.sent[n:], patience)
		if n += m; err != nil || n == len(c.sent) {
			return n > 0, err
		}
		c.watch()
	}
	m, err := c.conn.Write(c.sent[n:])
	return n+m > 0, err
}

// mayRepeat reports whether err may be that of a connection that was kept too long, and the target has received nothing
// over it, or what it may receive again.
func (c *Call) mayRepeat(err error, wrote bool) bool {
	if !c.conn.Reused || c.began || c.upload != nil || c.Request.Context().Err() != nil || !brokenOff(err) {
		return false
	}
	return !wrote || c.inline == 0 && c.Repeatable != nil && c.Repeatable(c.Request)
}

func brokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// cause returns why the call has failed, if its connection has with err: the failure of an upload comes first.
func (c *Call) cause(err error) error {
	if e := c.upload.failed(); e != nil {
		return e
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Release ends the call behind its response. The connection is kept if nothing remains on it: the request was sent, and
// the response's body was read to its end.
func (c *Call) Release() {
	if c.conn == nil || !c.reusable() {
		c.Close()
		return
	}
	c.sentBytes, c.receivedBytes = c.Bytes()
	c.conn.Keep()
	c.conn = nil
}

// Bytes returns how many bytes were sent and received over the last connection of the call by now, headers included, and
// those of TLS not.
func (c *Call) Bytes() (sent, received int64) {
	if c.conn == nil {
		return c.sentBytes, c.receivedBytes
	}
	return c.conn.sent.Load() - c.sentBefore, c.conn.received.Load() - c.receivedBefore
}

// reusable reports whether nothing remains on the connection, and nothing uses it any more.
func (c *Call) reusable() bool {
	return c.body.Whole() && !c.ends.close && !announcesClose(c.Request) &&
		c.upload.finished() && c.stopWatching() && !c.conn.interrupted.Load() && c.conn.Clean()
}

// announcesClose reports whether r tells the target that its connection ends: it carries no other request then (RFC 9112
// section 9.6), though the target may leave it open.
func announcesClose(r *http.Request) bool {
	return r.Close || httpguts.HeaderValuesContainsToken(r.Header["Connection"], "close")
}

// Close ends the call and closes its connection. Behind Release or another Close it does nothing.
func (c *Call) Close() {
	if c.conn != nil {
		c.stopWatching()
		c.sentBytes, c.receivedBytes = c.Bytes()
		c.conn.Close()
		c.conn = nil
	}
}
