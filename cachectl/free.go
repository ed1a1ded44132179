package cachectl

import (
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/response"
)

// FreeStuck returns a filter that has browsers forget all that they keep of the origin, with
// "Clear-Site-Data: "cache"" on answers that match, until a time. It frees users who hold a
// page that sticks: no request for that page reaches the server any more, but one for any
// other page of the origin does. It costs them their whole cache of the origin each time,
// so choose a route that is asked for seldom, and a time that ends. Browsers heed it over
// HTTPS, and on localhost.
func FreeStuck(match Match, until time.Time) (func(http.Handler) http.Handler, error) {
	if match == nil {
		return nil, errors.New("cachectl: FreeStuck without a Match")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			response.Serve(next, w, r, response.Hooks{Head: func(status int, h http.Header) {
				if status >= 200 && time.Now().Before(until) && match(&Response{r, status, h}) {
					h["Clear-Site-Data"] = append(h["Clear-Site-Data"], `"cache"`)
				}
			}})
		})
	}, nil
}
