package filters

import (
	"context"

	"github.com/culvert-go/culvert/internal/result"
)

// Result is the record of a proxied exchange: the upstream, each target that was
// tried with its status and times, tunnelled bytes, the error. It is complete
// when the handler has returned; ResponseHooks.Head sees the attempt whose response it is
// already, with its target, status and time to the header.
type Result = result.Result

// Try is one attempt against one target.
type Try = result.Try

// WithResult returns a context that asks the proxy below to record its exchange.
// If ctx asks already, its Result is returned, so several filters share one.
func WithResult(ctx context.Context) (context.Context, *Result) { return result.With(ctx) }

// WithNewResult is WithResult for a request of its own that is made on behalf of
// another one: its exchange is not recorded in the other's Result.
func WithNewResult(ctx context.Context) (context.Context, *Result) { return result.WithNew(ctx) }

// ResultFrom returns the Result that ctx carries, nil if nobody asked for one.
func ResultFrom(ctx context.Context) *Result { return result.From(ctx) }
