package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// panicError carries a panic of what a user has given, Options.DialContext for instance, from a goroutine on which it
// would end the program to that of the request.
type panicError struct{ value any }

// Error returns the value's text.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// carried is dial on a goroutine of http.Transport.
func carried(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		defer func() {
			if v := recover(); v != nil {
				conn, err = nil, &DialError{&panicError{v}}
			}
		}()
		return dial(ctx, network, addr)
	}
}

// arrived panics with what carried has caught, where err is that.
func arrived(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		if p := (*panicError)(nil); errors.As(err, &p) {
			panic(p.value)
		}
	}
	return resp, err
}
