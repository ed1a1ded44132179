package header

import (
	"net/http"
	"net/textproto"
)

// IsReserved reports whether the field of this name, in any case, says how a message is framed or
// sent: Content-Length, Host and the hop-by-hop fields. The party that writes the message chooses
// them.
func IsReserved(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return name == "Content-Length" || name == "Host" || isHopByHop(name)
}

// RemoveMisspelt deletes from h the fields that frame a message or belong to one connection, under
// names that are not canonical: those who write a message know the canonical ones, and would send
// the others beside their own.
func RemoveMisspelt(h http.Header) {
	for name := range h {
		if key := textproto.CanonicalMIMEHeaderKey(name); key != name && isFraming(key) {
			delete(h, name)
		}
	}
}

func isFraming(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Connection", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}
