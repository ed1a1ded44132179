package engine

import "net/http"

// chunkedModule decides how content of unknown length ends.
var chunkedModule = module{
	directives: []directive{
		{name: "chunked_transfer_encoding", compile: setFlag(chunkedSlot, func(chunked *bool) *bool { return chunked })},
	},
	active: func(l *level) bool { return !*chunkedSlot.of(l) },
	hooks:  hooks{header: endWithConnection},
}

var chunkedSlot = newSlot(true)

// endWithConnection has content of unknown length end with the connection, where it would be
// chunked. HTTP/2 has no chunks.
func endWithConnection(x *exchange, h http.Header) {
	if *chunkedSlot.of(x.level) || x.HTTP.ProtoMajor != 1 || x.HTTP.Method == http.MethodHead || h["Content-Length"] != nil {
		return
	}
	switch x.Status {
	case http.StatusSwitchingProtocols, http.StatusNoContent, http.StatusNotModified:
		return
	}
	h.Set("Transfer-Encoding", "identity") // package server and net/http send no such field, but close the connection
	h.Set("Connection", "close")
}
