package errs_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

func TestAs(t *testing.T) {
	e := &culvert.Error{Kind: culvert.DialFailed, Err: io.EOF}
	if errs.As(fmt.Errorf("outer: %w", e)) != e {
		t.Error("the error is not found")
	}
	if errs.As(nil) != nil || errs.As(io.EOF) != nil {
		t.Error("an error is found where there is none")
	}
}

func TestKindOfContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	timedOut, cancel := context.WithTimeoutCause(t.Context(), 0, fmt.Errorf("its time is over: %w", context.DeadlineExceeded))
	defer cancel()
	if a, b := errs.KindOfContext(ended), errs.KindOfContext(timedOut); a != culvert.ClientGone || b != culvert.Timeout {
		t.Errorf("%v and %v", a, b)
	}
}
