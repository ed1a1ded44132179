package filters

import (
	"context"

	"github.com/culvert-go/culvert/internal/result"
)

// Result is the record of a proxied exchange: the upstream, each attempt with its target,
// status and times, the bytes of a tunnel, the error. It is complete when the handler has
// returned. When ResponseHooks.Head is called it has the attempt that the response comes
// from already, with its target, status and time to the header.
type Result = result.Result

// Try is one attempt to get a response from one target.
type Try = result.Try

// WithResult returns a context with a Result, in which a proxy records its exchange. If
// ctx carries one already, it returns that one, so that several filters share it.
func WithResult(ctx context.Context) (context.Context, *Result) { return result.With(ctx) }

// WithNewResult is WithResult for a request that is made on behalf of another one: its
// exchange is recorded in a Result of its own.
func WithNewResult(ctx context.Context) (context.Context, *Result) { return result.WithNew(ctx) }

// ResultFrom returns the Result that ctx carries, nil if it carries none.
func ResultFrom(ctx context.Context) *Result { return result.From(ctx) }
