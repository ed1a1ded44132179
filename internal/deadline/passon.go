package deadline

import (
	"net/http"
	"time"
)

// Transforming is the writer of a filter that may change a response's content: what is written to it reaches the client in
// other pieces, and perhaps later.
type Transforming interface {
	http.ResponseWriter
	// Transforms reports, behind the final header, whether the filter changes the content.
	Transforms() bool
	// BoundOutput has the writer call d's Begin and End around each write and flush that it makes, Finish behind the last, and
	// Stop where the response is aborted. It stops a Deadline that it was given before.
	BoundOutput(d *Deadline)
}

// PassOn leaves the bounds to the outermost filter that changes the response's content, if one does: what such filters do in a
// write, and whatever they wait for, does not count as the client's time. It is to be called behind the final header, not in
// an operation, and behind Change. From then on Begin and End do nothing.
func (d *Deadline) PassOn() {
	var outermost Transforming
	for w := d.w; w != nil; w = unwrap(w) {
		if t, ok := w.(Transforming); ok && t.Transforms() {
			outermost = t
		}
	}
	if outermost == nil {
		return
	}
	passed := *d
	if w := d.w; d.stream != nil {
		passed.stream = &stream{expire: func() { _ = set(w, true, past) }}
	}
	d.passed = &passed
	outermost.BoundOutput(d.passed)
}

// unwrap returns the writer that w wraps, nil where it is not known to wrap one.
func unwrap(w http.ResponseWriter) http.ResponseWriter {
	if outer, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return outer.Unwrap()
	}
	return nil
}

// leavePassed is Leave of a Deadline that was passed on: it is the filter's, which may have a part of the response still to write.
func (d *Deadline) leavePassed() {
	d.passed.left, d.passed.end = true, time.Time{}
	d.passed = nil
	d.Stop()
}

// Finish ends the use of a Deadline that was passed on, when the filter has written all: as Leave, if what it was passed on from was left.
func (d *Deadline) Finish() {
	if d.left {
		d.Leave()
		return
	}
	d.Stop()
}
