package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientbody"
)

var _ clientbody.Reopener = (*requestBody)(nil)

// leavable ends an attempt over a transport without its read of the client's body. Over HTTP/2 net/http's transport waits
// for that read, and so for the client's next bytes, where the stream has broken off before its response, and where the body
// of a response is closed; unless the context of the request has ended, which is one of its own here, so that what the
// attempt has failed with remains known. An attempt whose body is there as a whole has none.
type leavable struct {
	leaving   context.CancelFunc // nil: the attempt need not be left
	left      <-chan struct{}    // closed by leaving, or where the attempt's time is over
	reading   atomic.Bool        // the transport reads
	traced    atomic.Bool        // it tells of its connections, and so of the first byte of a response
	closed    atomic.Bool        // it will read no more over the last of them
	responded atomic.Bool        // the first byte of a response has been received, of an interim one perhaps
	returned  atomic.Bool        // RoundTrip has returned
}

// returnTime is more than RoundTrip needs to return, once the header of a final response has been received.
const returnTime = time.Second

// noticeTime is more than RoundTrip needs to notice that the stream has broken off, on a busy machine, too: where it learns of the
// leaving at the same moment, it may return that in the place of what the stream has broken off with, a refusal of the request for one.
const noticeTime = 50 * time.Millisecond

// leavableContext returns the context of the request that the transport sends. ctx is the attempt's.
func (b *requestBody) leavableContext(ctx context.Context) context.Context {
	if b.source.body == nil || b.whole != nil {
		return ctx
	}
	ctx, b.leaving = context.WithCancel(ctx)
	b.left = ctx.Done()
	return ctx
}

// hasLeft reports whether the attempt was left, or its time is over.
func (b *requestBody) hasLeft() bool {
	select {
	case <-b.left:
		return true
	default:
		return false
	}
}

// leave ends the transport's wait for the body.
func (b *requestBody) leave() {
	if b.leaving != nil {
		b.leaving()
	}
}

// beginRead is called when the transport reads, and reports whether it has closed the body.
func (b *requestBody) beginRead() (closed bool) {
	b.reading.Store(true)
	return b.leaving != nil && b.closed.Load()
}

// readOrLeave reads until the attempt is left: the transport ends its stream no sooner than its read has returned, and the target would
// have the request until then, beside one that has been given its place (upstream.Target.MaxConns). What the client sends next is for the
// next attempt. A body that can't be sent to another target needs none of that: the read ends with the handler.
func (b *requestBody) readOrLeave(p []byte) (int, error) {
	switch {
	case b.leaving == nil:
		return b.next(p)
	case b.hasLeft(): // a read before may be under way
		return 0, errTryEnded
	case !b.source.replayable():
		return b.next(p)
	}
	type result struct {
		n   int
		err error
	}
	buf, read := bufpool.Get(), make(chan result, 1) // p is the transport's again when it has left
	go func() {
		var r result
		defer func() { read <- r }()
		defer b.source.catch(&r.err)
		r.n, r.err = b.next(buf[:min(len(p), len(buf))])
	}()
	select {
	case r := <-read:
		n := copy(p, buf[:r.n])
		bufpool.Put(buf)
		return n, r.err
	case <-b.left:
		return 0, errTryEnded
	}
}

// connected is called when the transport has a connection. Over HTTP/2 it may have closed the body then, unread, where it has found
// that it could not use the one before: it reads the body over this one.
func (b *requestBody) connected() {
	b.traced.Store(true)
	b.closed.Store(false)
	b.want()
}

// Reopen implements clientbody.Reopener, for a group's transport that sends the request over another connection.
func (b *requestBody) Reopen() bool {
	if b.ended.Load() || b.at.Load() > 0 {
		return false
	}
	b.closed.Store(false)
	b.want()
	return true
}

// leaveUnread is called when the transport closes the body. With a read under way the stream has broken off, or a final
// response refuses the rest: behind that RoundTrip returns as soon as it has noticed.
func (b *requestBody) leaveUnread() {
	b.closed.Store(true)
	switch {
	case b.leaving == nil || !b.reading.Load():
	case b.traced.Load() && !b.responded.Load():
		b.leaveAfter(noticeTime)
	default:
		b.leaveAfter(returnTime)
	}
}

// leaveAfter ends the transport's wait for the body, unless RoundTrip has returned by then.
func (b *requestBody) leaveAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		if !b.returned.Load() {
			b.leave()
		}
	})
}

// besides returns the body of a response beside which the request is still sent, perhaps.
//
// Over HTTP/2 net/http's transport looks at nothing but the request's body as long as it reads that, or waits for a window to send
// it, as of a body that is there as a whole: the end of the attempt's context does not end the response's body then. Nor does it, of
// whatever request, until the target has been told, over a connection that it may not read. So the body is closed for it.
func (b *requestBody) besides(resp *http.Response) io.ReadCloser {
	if b.source.body == nil && resp.ProtoMajor < 2 || resp.Body == http.NoBody {
		return resp.Body
	}
	body := &besideUpload{ReadCloser: resp.Body, upload: b}
	if resp.ProtoMajor >= 2 {
		body.ended = make(chan struct{})
		body.unwatch = context.AfterFunc(b.ctx, body.end)
	}
	return body
}

// besideUpload is the body of a response whose request may still be read, or that comes over HTTP/2.
type besideUpload struct {
	io.ReadCloser
	upload  *requestBody
	unwatch func() bool   // nil: the transport watches the context itself
	ended   chan struct{} // closed when end has returned
	once    sync.Once
}

// end closes the body when the attempt's context has ended. A panic of a transport's own body is the handler's.
func (b *besideUpload) end() {
	defer close(b.ended)
	var err error
	defer b.upload.source.catch(&err)
	err = b.ReadCloser.Close()
}

// stopWatching ends the watch of the context. Behind it end does not run.
func (b *besideUpload) stopWatching() {
	if b.unwatch != nil && !b.unwatch() {
		<-b.ended
	}
}

// Read implements io.Reader. Where the attempt's context has ended its error is the body's, as it is net/http's.
func (b *besideUpload) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if ended := b.upload.ctx.Err(); err != nil && err != io.EOF && ended != nil {
		err = ended
	}
	return n, err
}

// Close implements io.Closer.
func (b *besideUpload) Close() error {
	b.once.Do(b.stopWatching)
	if !b.upload.source.client.Ended() {
		b.upload.leave()
	}
	return b.ReadCloser.Close()
}
