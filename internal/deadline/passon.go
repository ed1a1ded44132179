package deadline

import (
	"net/http"
	"time"
)

// Transforming is implemented by the writer of a filter that may change a response's content. What is written to it
// reaches the client in other pieces, and perhaps later.
type Transforming interface {
	http.ResponseWriter
	// Transforms reports whether the filter changes the content. It is called after the final header.
	Transforms() bool
	// BoundOutput makes the writer call d's Begin and End around each write and flush that it makes, Finish after the last,
	// and Stop if the response is aborted. It stops the Deadline of an earlier call.
	BoundOutput(d *Deadline)
}

// PassOn passes the bounds of d to the outermost filter that changes the response's content, if there is one: the time that
// such filters take in a write is not the client's. It must be called after the final header and after Change, and not
// within an operation. If it has passed the bounds on, Begin and End do nothing from then on.
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
		passed.stream = &stream{expire: func() { _ = set(w, true, Past) }}
	}
	d.passedTo = &passed
	outermost.BoundOutput(d.passedTo)
}

// unwrap returns the writer that w wraps, nil if it has no method Unwrap.
func unwrap(w http.ResponseWriter) http.ResponseWriter {
	if outer, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return outer.Unwrap()
	}
	return nil
}

// leavePassedOn is Leave after PassOn. The filter keeps the Deadline that it received: it may have a part of the response
// still to write.
func (d *Deadline) leavePassedOn() {
	d.passedTo.left, d.passedTo.end = true, time.Time{}
	d.passedTo = nil
	d.Stop()
}

// Finish ends the use of a Deadline that a filter has received, when the filter has written the whole response. It is Leave
// if Leave was called on the Deadline that PassOn was called on, else Stop.
func (d *Deadline) Finish() {
	if d.left {
		d.Leave()
		return
	}
	d.Stop()
}
