package cachectl

import (
	"errors"
	"net/http"
	"time"
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
	return atHead(func(r *Response) {
		if r.Status >= 200 && time.Now().Before(until) && match(r) {
			r.Header["Clear-Site-Data"] = append(r.Header["Clear-Site-Data"], `"cache"`)
		}
	}), nil
}
