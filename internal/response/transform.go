package response

import (
	"errors"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/record"
)

// TransformError is the failure of a body transform itself. It is caused neither by the client nor by
// the target.
type TransformError struct{ Err error }

// Error returns "response body transform: " and the text of the cause.
func (e *TransformError) Error() string { return "response body transform: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TransformError) Unwrap() error { return e.Err }

// transformError returns the error of a call of the transform that returned err. If a write of the
// transform's output has failed, it is that failure, even if the transform wraps or replaces it.
func (w *writer) transformError(err error) error {
	switch {
	case err == nil:
		return nil
	case w.writeErr != nil:
		return w.writeErr
	}
	return &TransformError{err}
}

// recordFailure records err, the failure at the end of a body, in the Result for the outer filters, unless
// that has an error already. The handler has returned and can't report it.
func (w *writer) recordFailure(err error) {
	r := record.From(w.r.Context())
	if r == nil || r.Err != nil {
		return
	}
	e := &culvert.Error{Kind: culvert.ClientGone, BytesSent: true, HeaderSent: true, Err: err}
	failed := (*TransformError)(nil)
	switch ctx := w.r.Context(); {
	case errors.As(err, &failed), err == errShort && ctx.Err() == nil:
		e.Kind = culvert.Internal
	case err == errShort:
		e.Kind = errs.KindOfContext(ctx)
	}
	r.Err = e
}
