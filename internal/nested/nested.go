// Package nested marks requests that are made in the course of another one, which holds its places meanwhile: a target's
// connection, a place among those that run. They must not wait for a place, since that may be the other one's, or that of
// another one in the same position.
package nested

import "context"

type key struct{}

// With returns a context for such a request.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Without returns a context of what is begun in the course of such a request, and outlives it: it may wait.
func Without(ctx context.Context) context.Context {
	if !Is(ctx) {
		return ctx
	}
	return context.WithValue(ctx, key{}, false)
}

// Is reports whether ctx is that of such a request.
func Is(ctx context.Context) bool { return ctx.Value(key{}) == true }
