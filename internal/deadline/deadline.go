// Package deadline bounds how long the client of a handler may take for a read or a write, and says when to move the
// deadline of any connection.
package deadline

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// Deadline bounds the reads or the writes of a handler's client. An operation is a read, write or flush between Begin
// and End. While a Deadline is in use, nothing else may set the client's deadline of that kind.
//
// The deadline of an HTTP/1 connection fails only an operation that waits for the client when it passes, and later ones.
// That of a stream of net/http's HTTP/2 server ends the stream, also while no operation waits for the client: a response
// that pauses would be cut off. So over HTTP/2 it is set only when an operation has taken too long.
//
// The zero Deadline bounds nothing. Operations must not overlap, and the methods are not safe for concurrent use.
type Deadline struct {
	client   *clientside.Handle // nil before start and after Stop
	own      bool               // client is of no other use: it ends with d
	writes   bool               // d bounds writes, not reads
	timeout  time.Duration      // of an operation, 0 for none
	end      time.Time          // of all operations, zero for none
	until    time.Time          // when the last operation must end; over HTTP/1 the deadline that is set
	has      time.Time          // the deadline of the connection before d's first; zero for none, and if it is not known
	stream   *stream            // nil over HTTP/1
	server   time.Duration      // the server's WriteTimeout; 0 for none, and for reads
	passedTo *Deadline          // if not nil, a filter bounds its writes with it, in place of d
	left     bool               // d was passed to a filter, and Leave was called
}

// Past is a deadline that fails reads and writes at once, also those that are under way.
var Past = clientside.Past

// StartReads makes d bound the reads of the body of r, the request of client. timeout bounds each read; it may be exceeded
// by a quarter, and 0 means no bound. The deadline of r's context bounds all reads.
func (d *Deadline) StartReads(client *clientside.Handle, r *http.Request, timeout time.Duration) {
	d.start(client, false, r, timeout)
}

// StartWrites is StartReads for the writes and flushes of the response.
func (d *Deadline) StartWrites(client *clientside.Handle, r *http.Request, timeout time.Duration) {
	d.start(client, true, r, timeout)
}

func (d *Deadline) start(client *clientside.Handle, writes bool, r *http.Request, timeout time.Duration) {
	d.writes, d.timeout = writes, max(timeout, 0)
	d.end, _ = r.Context().Deadline()
	if writes {
		d.server = serverTimeout(r)
	}
	d.bind(client, r.ProtoMajor != 1)
}

// bind has d set the deadlines of client, over HTTP/2 or HTTP/1.
func (d *Deadline) bind(client *clientside.Handle, http2 bool) {
	d.client = client
	switch writes := d.writes; {
	case http2:
		d.stream = &stream{expire: func() { _ = set(client, writes, Past) }}
	case writes && d.timeout > 0:
		d.has = client.WriteDeadline()
	}
}

// Extend returns when an operation that begins now must end. until is when the one before had to. It is returned while at
// least timeout is left until then, since to set a deadline for each operation is much more expensive; else the result is
// timeout and a quarter of it from now. The longest time.Duration does not overflow.
func Extend(until time.Time, timeout time.Duration) time.Time {
	now := time.Now()
	if until.Sub(now) >= timeout {
		return until
	}
	return now.Add(timeout).Add(timeout / 4)
}

func set(client *clientside.Handle, writes bool, t time.Time) error {
	if writes {
		return client.SetWriteDeadline(t)
	}
	return client.SetReadDeadline(t)
}

// Change replaces the bounds of later operations. timeout bounds each, end bounds them all; a zero value means no bound.
func (d *Deadline) Change(timeout time.Duration, end time.Time) { d.timeout, d.end = timeout, end }

// Begin begins an operation, and sets its deadline.
func (d *Deadline) Begin() {
	if d.client == nil || d.passedTo != nil {
		return
	}
	until := d.next()
	changed := !until.Equal(d.until)
	d.until = until
	switch {
	case d.stream != nil:
		d.stream.setUntil(until)
	case changed:
		_ = set(d.client, d.writes, until)
	}
}

// next returns when an operation that begins now must end.
func (d *Deadline) next() time.Time {
	if d.timeout == 0 {
		return d.end
	}
	last := d.until
	if last.IsZero() && !d.has.IsZero() && time.Until(d.has) <= d.timeout+d.timeout/4 {
		last = d.has // of an earlier response
	}
	until := Extend(last, d.timeout)
	if !d.end.IsZero() && d.end.Before(until) {
		return d.end
	}
	return until
}

// Passed reports whether the operation that is under way has exceeded its time.
func (d *Deadline) Passed() bool { return !d.until.IsZero() && !time.Now().Before(d.until) }

// End ends an operation.
func (d *Deadline) End() {
	if d.stream != nil {
		d.stream.setUntil(time.Time{})
	}
}

// Expire fails the operation that is under way, and later ones. It returns an error if the writer has no deadlines, or if
// its handler has returned.
func (d *Deadline) Expire() error {
	if d.client == nil {
		return http.ErrNotSupported
	}
	d.until = Past
	return set(d.client, d.writes, Past)
}

// Clear removes the deadline of an HTTP/1 connection, for what others read or write on it.
func (d *Deadline) Clear() {
	if d.stream == nil && !d.until.IsZero() {
		d.until = time.Time{}
		_ = set(d.client, d.writes, d.until)
	}
}

// Restore is Clear before the final response is written, if the server has a WriteTimeout: it sets the deadline to
// since plus that timeout, as the server did when it had read the request's header. since is when the handler was called,
// or later.
func (d *Deadline) Restore(since time.Time) {
	if d.stream == nil && !d.until.IsZero() && d.server > 0 {
		d.until = time.Time{}
		_ = set(d.client, d.writes, since.Add(d.server))
		return
	}
	d.Clear()
}

// Leave ends the use of d while a part of the response is still to be written: the server writes its buffer after the
// handler has returned. That is an operation with a timeout of its own, and the end of all operations does not bound it.
func (d *Deadline) Leave() {
	switch {
	case d.client == nil:
		return
	case d.passedTo != nil:
		d.leavePassedOn()
		return
	}
	d.end = time.Time{}
	if until := d.next(); d.stream != nil && !until.IsZero() || d.stream == nil && !until.Equal(d.until) {
		_ = set(d.client, d.writes, until)
	}
	d.Stop()
}

// Stop ends the use of d: from then on d sets no deadline. The deadline of an HTTP/1 connection is left, since
// net/http's server sets its own before the next request.
func (d *Deadline) Stop() {
	if d.passedTo != nil {
		d.passedTo.Stop()
	}
	if d.own {
		d.client.End()
	}
	d.client, d.own, d.passedTo = nil, false, nil
	if d.stream != nil {
		d.stream.stop()
	}
}
