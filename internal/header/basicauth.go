package header

import (
	"net/http"
	"strings"
)

// BasicAuth is the BasicAuth of r, also with several blanks behind the scheme, which RFC 9110 section 11.4 allows.
func BasicAuth(r *http.Request) (user, password string, ok bool) {
	const scheme = "Basic "
	line := r.Header.Get("Authorization")
	if len(line) <= len(scheme) || line[len(scheme)] != ' ' || !strings.EqualFold(line[:len(scheme)], scheme) {
		return r.BasicAuth()
	}
	one := http.Request{Header: http.Header{"Authorization": {scheme + strings.TrimLeft(line[len(scheme):], " ")}}}
	return one.BasicAuth()
}
