package wsupgrade

import (
	"net"
	"net/http"
	"strings"
)

// sameOrigin is the default CheckOrigin. A browser always sends an Origin with a WebSocket (RFC
// 6455 section 4.1), so a request without one comes from something else. "null", a list and a
// second field are not the site's own pages.
//
// Only hosts and ports are compared: TLS may have ended in front of this
// server, which then can't know the scheme that the browser sees.
func sameOrigin(r *http.Request) bool {
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	if len(origins) != 1 {
		return false
	}
	scheme, host, ok := strings.Cut(origins[0], "://")
	if !ok || host == "" {
		return false
	}
	var port string
	switch strings.ToLower(scheme) {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return false
	}
	return strings.EqualFold(withPort(host, port), withPort(r.Host, port))
}

// withPort adds port where host names none.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
