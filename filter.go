package culvert

import "net/http"

// Filter wraps a handler. It is an alias, so that any middleware of that type is a Filter.
type Filter = func(http.Handler) http.Handler
