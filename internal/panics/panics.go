// Package panics logs panics of users' functions that run on the library's own goroutines. There a panic would end the
// program, since no handler and no server recovers from it.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// Contain must be deferred by the caller of a user's function, whose name is function. It recovers from a panic of that
// function and logs it with its stack to l. If l is nil, it logs to slog.Default(). It does not log http.ErrAbortHandler,
// as net/http does not.
func Contain(l *slog.Logger, function string) {
	if v := recover(); v != nil {
		Log(l, function, v, debug.Stack())
	}
}

// Log logs, as Contain does, that the named function has panicked with value at stack.
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
