package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// panicError carries a panic of a user's function, Options.DialContext for instance, from a goroutine
// on which it would end the program to the goroutine of the request.
type panicError struct{ value any }

// Error returns the value's text.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recoverPanics returns a dialer that returns dial's panics as a *panicError, for goroutines of http.Transport.
func recoverPanics(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		defer func() {
			if v := recover(); v != nil {
				conn, err = nil, &DialError{&panicError{v}}
			}
		}()
		return dial(ctx, network, addr)
	}
}

// repanic panics with the value that recoverPanics has caught, if err is its error, and returns its
// arguments otherwise.
func repanic(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		if p := (*panicError)(nil); errors.As(err, &p) {
			panic(p.value)
		}
	}
	return resp, err
}
