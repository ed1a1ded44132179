package cachectl

import (
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/internal/response"
)

// responses are used again: each answer would make one, for functions that must not keep it.
var responses = sync.Pool{New: func() any { return new(Response) }}

// atHead returns a filter that calls f with each final head, and with that of a 101.
func atHead(f func(*Response)) func(http.Handler) http.Handler {
	hooks := &response.Hooks{Head: func(r *http.Request, status int, h http.Header) {
		answer := responses.Get().(*Response)
		*answer = Response{Request: r, Status: status, Header: h}
		f(answer)
		*answer = Response{}
		responses.Put(answer)
	}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(next, w, r, hooks)
		})
	}
}
