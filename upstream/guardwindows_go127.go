//go:build go1.27

package upstream

import "net/http"

// guardWindows does nothing: net/http's client of HTTP/2 ends a stream whose window overflows itself.
func guardWindows(*http.Transport) {}
