package engine

import (
	"net"
	"net/http"
	"strings"
)

// clientAddress returns the client's address of r's connection. Over a unix socket it is "unix:",
// followed by the path if the client has bound its own (ngx_sock_ntop).
func clientAddress(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case local == nil || local.Network() != "unix":
		return r.RemoteAddr
	case strings.HasPrefix(r.RemoteAddr, "@"): // Go's prefix for a socket without a file
		return unixPrefix
	}
	return unixPrefix + r.RemoteAddr
}

// overUnix reports whether the client is connected over a unix socket.
func overUnix(x *exchange) bool { return strings.HasPrefix(x.HTTP.RemoteAddr, unixPrefix) }
