package head

import "net/textproto"

// IsReserved reports whether the field of this name, in any case, says how a message is framed or
// sent: Content-Length, Host and the hop-by-hop fields. The party that writes the message chooses
// them.
func IsReserved(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return name == "Content-Length" || name == "Host" || isHopByHop(name)
}
