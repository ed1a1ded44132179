package cachectl

import (
	"errors"
	"net/http"
	"time"
)

// FreeStuck returns a filter that makes browsers clear their cache of the origin: until the given
// time it adds "Clear-Site-Data: "cache"" to responses that match. It helps users whose browser holds
// a page that sticks: requests for that page no longer reach the server, but those for other pages of
// the origin do. Each such response costs a user the whole cache of the origin, so choose a route
// that is seldom requested, and a time not far away. Browsers heed the field over HTTPS, and on
// localhost. It is an error if match is nil.
func FreeStuck(match Match, until time.Time) (func(http.Handler) http.Handler, error) {
	if match == nil {
		return nil, errors.New("cachectl: FreeStuck without a Match")
	}
	return atHeader(func(r *Response) {
		if r.Status >= 200 && time.Now().Before(until) && match(r) {
			r.Header["Clear-Site-Data"] = append(r.Header["Clear-Site-Data"], `"cache"`)
		}
	}), nil
}
