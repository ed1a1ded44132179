package engine

import "net/http"

// serverHeaderModule sets the field Server. It has no directive: server_tokens is a no-op.
var serverHeaderModule = module{
	hooks: hooks{header: setServerHeader},
}

// setServerHeader names culvert, unless proxy_pass_header lets the upstream's name through.
func setServerHeader(_ *exchange, h http.Header) {
	if h["Server"] == nil {
		h.Set("Server", "culvert")
	}
}
