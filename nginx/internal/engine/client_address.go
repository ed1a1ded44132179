package engine

import (
	"net"
	"net/http"
	"strings"
)

// clientAddress is the other end of r's connection: that of a unix socket is "unix:", and
// the path if the client has bound its own (ngx_sock_ntop).
func clientAddress(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case local == nil || local.Network() != "unix":
		return r.RemoteAddr
	case strings.HasPrefix(r.RemoteAddr, "@"): // Go's word for no file
		return unixPrefix
	}
	return unixPrefix + r.RemoteAddr
}

// overUnix says whether the client is one of a unix socket.
func (x *exchange) overUnix() bool { return strings.HasPrefix(x.HTTP.RemoteAddr, unixPrefix) }
