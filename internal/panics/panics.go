// Package panics logs panics of users' functions that run on the library's own goroutines, or carries them to a handler's
// as errors. On the library's own a panic would end the program, since no handler and no server recovers from it.
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

// Error is the panic of a user's function.
type Error struct {
	// Value is what the function has panicked with.
	Value any
	// Stack is that of its goroutine, as from debug.Stack.
	Stack []byte
}

// Error returns the value's text.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch must be deferred by the caller of a user's function. It recovers from a panic of that function and sets err to an
// *Error.
func Catch(err *error) {
	if v := recover(); v != nil {
		*err = &Error{v, debug.Stack()}
	}
}
