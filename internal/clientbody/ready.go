package clientbody

import "io"

// Receiver is a request's body that knows what of it was received.
type Receiver interface {
	// Ready reports whether a read returns at once: something was received, or the body has ended.
	Ready() bool
	// Received reports whether all that is left of the body was received.
	Received() bool
}

// Ready reports whether it is known that a read of body returns at once.
func Ready(body io.Reader) bool {
	r, ok := body.(Receiver)
	return ok && r.Ready()
}

// Received reports whether it is known that all that is left of body was received.
func Received(body io.Reader) bool {
	r, ok := body.(Receiver)
	return ok && r.Received()
}

// Ready reports whether it is known that a read returns at once.
func (b *Body) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || (b.state == fresh || b.state == idle) && Ready(b.body)
}
