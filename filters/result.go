package filters

import (
	"context"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
)

// WithResult returns a context in which the proxy below records its exchange. If ctx has a
// Result already, that one is returned, so that several filters share one.
func WithResult(ctx context.Context) (context.Context, *culvert.Result) {
	ctx, r := record.With(ctx)
	return ctx, &r.Result
}

// WithNewResult is WithResult for a request of its own that is made on behalf of another one:
// its exchange is not recorded in the other's Result.
func WithNewResult(ctx context.Context) (context.Context, *culvert.Result) {
	ctx, r := record.WithNew(ctx)
	return ctx, &r.Result
}

// ResultFrom returns the Result that ctx carries, nil if there is none.
func ResultFrom(ctx context.Context) *culvert.Result { return record.Of(record.From(ctx)) }
