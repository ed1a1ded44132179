package response

import "github.com/culvert-go/culvert/internal/deadline"

// Transforms implements deadline.Transforming.
func (w *writer) Transforms() bool { return w.body != nil }

// BoundOutput implements deadline.Transforming.
func (w *writer) BoundOutput(d *deadline.Deadline) {
	if w.output != nil {
		w.output.Stop()
	}
	w.output = d
}

// beginOutput must be called before a call of the inner writer that may wait for the client.
func (w *writer) beginOutput() {
	w.callingInner = true
	if w.output != nil {
		w.output.Begin()
	}
}

// endOutput must be called after such a call, unless it has panicked.
func (w *writer) endOutput() {
	w.callingInner = false
	if w.output != nil {
		w.output.End()
	}
}
