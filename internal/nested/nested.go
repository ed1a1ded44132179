// Package nested marks requests that are made in the course of another one, which holds its places meanwhile: a target's
// connection, a place among those that run. They must not wait for a place, since that may be the other one's, or that of
// another one in the same position.
package nested

import "context"

type key struct{}

// With returns a context for such a request.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is that of such a request.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }
