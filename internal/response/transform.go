package response

import (
	"errors"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/result"
)

// TransformError is the failure of a body transform itself. It is neither the client's doing nor
// the target's.
type TransformError struct{ Err error }

// Error returns the cause, and that a transform of the body has failed.
func (e *TransformError) Error() string { return "response body transform: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TransformError) Unwrap() error { return e.Err }

// transformed is the error of a call of the transform: a failure of what it writes to is that one,
// whatever the transform makes of it.
func (w *writer) transformed(err error) error {
	switch {
	case err == nil:
		return nil
	case w.unsent != nil:
		return w.unsent
	}
	return &TransformError{err}
}

// record notes the failure of a body's end for the filters around, unless one is noted already: the
// handler has returned, and can't tell it.
func (w *writer) record(err error) {
	r := result.From(w.r.Context())
	if r == nil || r.Err != nil {
		return
	}
	e := &fault.Error{Kind: fault.ClientGone, Wrote: true, HeadSent: true, Err: err}
	failed := (*TransformError)(nil)
	switch ctx := w.r.Context(); {
	case errors.As(err, &failed), err == errShort && ctx.Err() == nil:
		e.Kind = fault.Internal
	case err == errShort:
		e.Kind = fault.Ended(ctx)
	}
	r.Err = e
}
