package cachectl

import (
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/internal/response"
)

// responses spares an allocation for each response. The functions that get one must not keep it.
var responses = sync.Pool{New: func() any { return new(Response) }}

// atHeader returns a filter that calls f with each final header, and with that of a 101.
func atHeader(f func(*Response)) func(http.Handler) http.Handler {
	hooks := &response.Hooks{Header: func(r *http.Request, status int, h http.Header) {
		resp := responses.Get().(*Response)
		*resp = Response{Request: r, Status: status, Header: h}
		f(resp)
		*resp = Response{}
		responses.Put(resp)
	}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(next, w, r, hooks)
		})
	}
}
