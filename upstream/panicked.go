package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/culvert-go/culvert/internal/panics"
)

// recoverPanics returns a dialer that returns dial's panics as a *panics.Error in a *DialError, for goroutines of
// http.Transport.
func recoverPanics(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		defer func() {
			if _, panicked := err.(*panics.Error); panicked {
				err = &DialError{err}
			}
		}()
		defer panics.Catch(&err)
		return dial(ctx, network, addr)
	}
}

// repanic panics with the value that recoverPanics has caught, if err is its error, and returns its
// arguments otherwise.
func repanic(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		if p := (*panics.Error)(nil); errors.As(err, &p) {
			panic(p.Value)
		}
	}
	return resp, err
}
