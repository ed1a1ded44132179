package header

import (
	"net/http"
	"net/textproto"
	"strings"
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
		if isFraming(name) && textproto.CanonicalMIMEHeaderKey(name) != name {
			delete(h, name)
		}
	}
}

// isFraming reports whether the field of this name, in any case, frames a message or belongs to one connection. It looks at
// the length first, since most names have another.
func isFraming(name string) bool {
	switch len(name) {
	case 4:
		return strings.EqualFold(name, "Host")
	case 7:
		return strings.EqualFold(name, "Trailer") || strings.EqualFold(name, "Upgrade")
	case 10:
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case 14:
		return strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Http2-Settings")
	case 16:
		return strings.EqualFold(name, "Proxy-Connection")
	case 17:
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}
