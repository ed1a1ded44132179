// Package panics logs panics of users' functions that run on goroutines of the library's own, where a panic would end the
// program and no handler is there whose it could be.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Contain is deferred around a call of the function that is named: it recovers from a panic of it, and logs that with its
// stack to l, or to slog.Default() where l is nil. http.ErrAbortHandler is not logged, as net/http does not.
func Contain(l *slog.Logger, function string) {
	if v := recover(); v != nil {
		Log(l, function, v, debug.Stack())
	}
}

// Log logs what the function that is named has panicked with, as Contain does, with the stack.
func Log(l *slog.Logger, function string, value any, stack []byte) {
	if value == http.ErrAbortHandler {
		return
	}
	if l == nil {
		l = slog.Default()
	}
	l.LogAttrs(context.Background(), slog.LevelError, "panic", slog.String("function", function),
		slog.String("panic", fmt.Sprint(value)), slog.String("stack", string(stack)))
}
