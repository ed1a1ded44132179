// Package nested marks requests that are made while another request is served. The outer request holds its places
// meanwhile: a connection to a target, a place among the requests that run. A nested request must not wait for a place,
// since the one that it waits for may be held by its outer request, or by another outer request that waits as well.
package nested

import "context"

type key struct{}

// With returns a context for a nested request.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Without returns a context for work that a nested request starts and that outlives it. Such work may wait.
func Without(ctx context.Context) context.Context {
	if !Is(ctx) {
		return ctx
	}
	return context.WithValue(ctx, key{}, false)
}

// Is reports whether ctx is the context of a nested request.
func Is(ctx context.Context) bool { return ctx.Value(key{}) == true }

// besideKey is the context key of Beside.
type besideKey struct{}

// Beside returns a context for a request that is sent beside another one, and is ended when that one has a response: its
// outcome may not be known. It does not get a target whose health depends on the outcome.
func Beside(ctx context.Context) context.Context { return context.WithValue(ctx, besideKey{}, true) }

// IsBeside reports whether ctx is Beside's.
func IsBeside(ctx context.Context) bool { return ctx.Value(besideKey{}) != nil }
