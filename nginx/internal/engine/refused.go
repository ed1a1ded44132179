package engine

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	front "github.com/culvert-go/culvert/server" // the engine has servers of its own
)

// RefusedRequest returns a request for a Listener's Handler, which responds to it with the error page of the refusal, and
// logs it. If the header was not received as a whole, it ends the connection, and logs 408 (client_header_timeout) or 400.
func RefusedRequest(r *front.Refusal) *http.Request {
	return r.Request.WithContext(context.WithValue(r.Request.Context(), refusalKey{}, r))
}

type refusalKey struct{}

// refusalOf returns the refusal that a context carries, nil if there is none.
func refusalOf(ctx context.Context) *front.Refusal {
	r, _ := ctx.Value(refusalKey{}).(*front.Refusal)
	return r
}

// enterRefused prepares x for a request that the server has refused.
func (x *exchange) enterRefused(r *front.Refusal) {
	x.Line, _, _ = strings.Cut(r.Line, "\r")
	switch {
	case errors.Is(r.Err, os.ErrDeadlineExceeded):
		x.refused, x.unanswered = http.StatusRequestTimeout, true
	case r.Status == 0:
		x.refused, x.unanswered = http.StatusBadRequest, true
	case r.Status == http.StatusRequestHeaderFieldsTooLarge:
		x.refused = 494 // which is sent as 400
	default:
		x.refused = r.Status
	}
}
