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

// beginOutput is called before a call of the inner writer that may wait for the client.
func (w *writer) beginOutput() {
	w.outward = true
	if w.output != nil {
		w.output.Begin()
	}
}

// endOutput is called behind it, where it has not panicked.
func (w *writer) endOutput() {
	w.outward = false
	if w.output != nil {
		w.output.End()
	}
}
