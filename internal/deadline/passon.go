package deadline

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// Transforming is implemented by the writer of a filter that may change a response's content. What is written to it
// reaches the client in other pieces, and perhaps later.
type Transforming interface {
	http.ResponseWriter
	// Transforms reports whether the filter changes the content. It is called after the final header.
	Transforms() bool
	// BoundOutput makes the writer call d's Begin and End around each write and flush that it makes, Finish after the last,
	// and Stop when the filter's handler has ended. It stops the Deadline of an earlier call.
	BoundOutput(d *Deadline)
}

// PassOn passes the bounds of d to the outermost filter that changes the response's content, if there is one: the time that
// such filters take in a write is not the client's. What the filter receives is bound to its own handler, which may return
// after the one that d is bound to. PassOn must be called after the final header and after Change, and not
// within an operation. If it has passed the bounds on, Begin and End do nothing from then on.
func (d *Deadline) PassOn() {
	var outermost Transforming
	for w := d.client.Writer(); w != nil; w = unwrap(w) {
		if t, ok := w.(Transforming); ok && t.Transforms() {
			outermost = t
		}
	}
	if outermost == nil {
		return
	}
	passed := &struct {
		Deadline
		outer clientside.Handle
	}{Deadline: *d}
	passed.outer.StartOuter(unwrap(outermost), d.client)
	passed.bind(&passed.outer, d.stream != nil)
	passed.own = true
	d.passedTo = &passed.Deadline
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
