// Package deadline bounds how long the client of a handler may take for a read or a write.
package deadline

import (
	"net/http"
	"time"
)

// Deadline bounds the reads or the writes of a response's writer, each between Begin and End. It alone sets the
// writer's deadline of that kind while it is in use.
//
// A deadline of an HTTP/1 connection fails only what waits for the client when it passes, and what begins behind it.
// One of a stream of net/http's HTTP/2 server ends the stream, also where nothing waits for the client: a response
// that pauses would be cut. There it is set when a read or write has taken too long, and not before.
//
// The zero Deadline bounds nothing. Operations must not overlap, and its methods not be called at the same time.
type Deadline struct {
	w       http.ResponseWriter // nil: nothing is bounded, or d is not used any more
	writes  bool                // not reads
	timeout time.Duration       // of an operation, 0 for none
	end     time.Time           // of all of them, zero for none
	until   time.Time           // of the last operation; over HTTP/1 the deadline that is set
	stream  *stream             // nil over HTTP/1
	server  time.Duration       // the server's WriteTimeout; 0 for none, and for reads
	passed  *Deadline           // not nil: a filter bounds the writes in place of d
	left    bool                // of one that was passed on: Leave was called
}

var past = time.Unix(1, 0)

// StartReads bounds the reads of r's body, which w responds to. timeout bounds each, to a quarter; 0 is no bound.
// The deadline of r's context bounds them all.
func (d *Deadline) StartReads(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	d.start(w, false, r, timeout)
}

// StartWrites does so for the writes and flushes of w.
func (d *Deadline) StartWrites(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	d.start(w, true, r, timeout)
}

func (d *Deadline) start(w http.ResponseWriter, writes bool, r *http.Request, timeout time.Duration) {
	d.w, d.writes, d.timeout = w, writes, max(timeout, 0)
	d.end, _ = r.Context().Deadline()
	if writes {
		d.server = serverTimeout(r)
	}
	if r.ProtoMajor != 1 {
		d.stream = &stream{expire: func() { _ = set(w, writes, past) }}
	}
}

// After returns when what begins now and may take timeout, to a quarter, must have ended. The longest timeout there is
// does not overflow.
func After(now time.Time, timeout time.Duration) time.Time { return now.Add(timeout).Add(timeout / 4) }

func set(w http.ResponseWriter, writes bool, t time.Time) error {
	rc := http.NewResponseController(w)
	if writes {
		return rc.SetWriteDeadline(t)
	}
	return rc.SetReadDeadline(t)
}

// Change replaces the bounds of later operations; end bounds them all, and zero values are no bound.
func (d *Deadline) Change(timeout time.Duration, end time.Time) { d.timeout, d.end = timeout, end }

// Begin gives an operation its time.
func (d *Deadline) Begin() {
	if d.w == nil || d.passed != nil {
		return
	}
	until := d.next()
	changed := !until.Equal(d.until)
	d.until = until
	switch {
	case d.stream != nil:
		d.stream.begin(until)
	case changed:
		_ = set(d.w, d.writes, until)
	}
}

// next returns when an operation that begins now must have ended. It moves that only when less than an operation's
// time is left, which is much cheaper than to set a deadline for each.
func (d *Deadline) next() time.Time {
	if d.timeout == 0 {
		return d.end
	}
	now := time.Now()
	if d.until.Sub(now) >= d.timeout {
		return d.until
	}
	until := After(now, d.timeout)
	if !d.end.IsZero() && d.end.Before(until) {
		return d.end
	}
	return until
}

// Passed reports whether the time is over of the operation that is under way.
func (d *Deadline) Passed() bool { return !d.until.IsZero() && !time.Now().Before(d.until) }

// End ends an operation.
func (d *Deadline) End() {
	if d.stream != nil {
		d.stream.begin(time.Time{})
	}
}

// Expire fails the operation that is under way, and later ones. It returns an error if the writer can't.
func (d *Deadline) Expire() error {
	if d.w == nil {
		return http.ErrNotSupported
	}
	d.until = past
	return set(d.w, d.writes, past)
}

// Clear takes the deadline away from what others read or write on the connection.
func (d *Deadline) Clear() {
	if d.stream == nil && !d.until.IsZero() {
		d.until = time.Time{}
		_ = set(d.w, d.writes, d.until)
	}
}

// Restore is Clear of writes before the final response, which the server has given its WriteTimeout: that begins when the
// request's header has been read. since is when its handler began, or later.
func (d *Deadline) Restore(since time.Time) {
	if d.stream == nil && !d.until.IsZero() && d.server > 0 {
		d.until = time.Time{}
		_ = set(d.w, d.writes, since.Add(d.server))
		return
	}
	d.Clear()
}

// Leave ends the use of d where more is left to be written than what was: what the server holds in its buffer is
// written when the handler has returned, which is an operation like each other one, without the end of all.
func (d *Deadline) Leave() {
	switch {
	case d.w == nil:
		return
	case d.passed != nil:
		d.leavePassed()
		return
	}
	d.end = time.Time{}
	if until := d.next(); d.stream != nil && !until.IsZero() || d.stream == nil && !until.Equal(d.until) {
		_ = set(d.w, d.writes, until)
	}
	d.Stop()
}

// Stop ends the use of d: behind it nothing reaches the writer through d. The deadline of a connection stays, since
// net/http's server sets its own before the next request.
func (d *Deadline) Stop() {
	if d.passed != nil {
		d.passed.Stop()
	}
	d.w, d.passed = nil, nil
	if d.stream != nil {
		d.stream.stop()
	}
}
