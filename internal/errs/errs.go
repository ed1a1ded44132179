// Package errs classifies errors as culvert's kinds of failure.
package errs

import (
	"context"
	"errors"

	"github.com/culvert-go/culvert"
)

// KindOfContext returns the kind of a failure that comes from the end of a request's context:
// ClientGone, or Timeout where the cause is that its time is over.
func KindOfContext(ctx context.Context) culvert.ErrorKind {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return culvert.Timeout
	}
	return culvert.ClientGone
}

// As returns the first *culvert.Error in err's chain, nil if there is none.
func As(err error) *culvert.Error {
	if err == nil {
		return nil // most often, and without an allocation
	}
	var e *culvert.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
