// Package hello reads the ClientHello of a TLS handshake without taking part in it, for ssl_preread.
package hello

import (
	"strings"
)

// Hello is what a ClientHello says (RFC 8446 section 4.1.2). The zero Hello is that of a client that does not speak TLS.
type Hello struct {
	// ServerName is the host name of the extension server_name (RFC 6066 section 3), "" if there is none.
	ServerName string
	// Protocols are the names of the extension application_layer_protocol_negotiation (RFC 7301), in order.
	Protocols []string
	// Version is the highest version that the client offers: its two bytes, and 0x0304 for every client with the extension
	// supported_versions, as in nginx.
	Version uint16
}

// Result is what Parse has found.
type Result int

const (
	// More: the bytes may be the beginning of a ClientHello.
	More Result = iota
	// Complete: the Hello is known.
	Complete
	// Other: this is not TLS, or malformed.
	Other
)

const (
	recordHeader    = 5
	recordHandshake = 22
	messageHeader   = 4
	messageHello    = 1

	extensionServerName        = 0
	extensionProtocols         = 16
	extensionSupportedVersions = 43
)

// Parse reads the ClientHello at the beginning of b, which may be split over several records. b must begin with the first byte
// of the connection; Parse may be called again with more of it.
func Parse(b []byte) (Hello, Result) {
	var message []byte
	for len(b) >= recordHeader {
		if isVersion2(b) {
			return Hello{Version: uint16(b[3])<<8 | uint16(b[4])}, Complete
		}
		if b[0] != recordHandshake || b[1] != 3 {
			return Hello{}, Other
		}
		n := recordHeader + int(b[3])<<8 + int(b[4])
		if len(b) < n {
			return Hello{}, More
		}
		message = append(message, b[recordHeader:n]...)
		b = b[n:]
		if len(message) > 0 && message[0] != messageHello {
			return Hello{}, Other
		}
		if len(message) < messageHeader {
			continue
		}
		length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
		if body := message[messageHeader:]; len(body) >= length {
			return parseBody(body[:length])
		}
	}
	return Hello{}, More
}

// isVersion2 reports whether b begins with a ClientHello in the format of SSL 2.0 (RFC 5246 appendix E.2).
func isVersion2(b []byte) bool { return b[0]&0x80 != 0 && b[2] == 1 && (b[3] == 0 || b[3] == 3) }

func parseBody(b []byte) (Hello, Result) {
	c := cursor{b: b}
	h := Hello{Version: uint16(c.number(2))}
	c.skip(32)          // random
	c.skip(c.number(1)) // session_id
	c.skip(c.number(2)) // cipher_suites
	c.skip(c.number(1)) // compression_methods
	if c.failed {
		return Hello{}, Other
	}
	if len(c.b) > 0 {
		extensions := c.sub(2)
		for len(extensions.b) > 0 && !extensions.failed {
			if !h.extension(&extensions) {
				return Hello{}, Other
			}
		}
		c.failed = c.failed || extensions.failed
	}
	if c.failed {
		return Hello{}, Other
	}
	return h, Complete
}

// extension reads one extension, and reports whether it is well formed. Like nginx it goes by the lengths inside of those that it
// knows, not by the extension's.
func (h *Hello) extension(c *cursor) bool {
	kind, length := c.number(2), c.number(2)
	switch {
	case kind == extensionServerName && h.ServerName == "":
		list := c.sub(2)
		nameType := list.number(1)
		name := list.sub(2)
		h.ServerName = string(name.b)
		return !list.failed && nameType == 0
	case kind == extensionProtocols && h.Protocols == nil:
		list := c.sub(2)
		for len(list.b) > 0 && !list.failed {
			name := list.sub(1)
			if list.failed || len(name.b) == 0 {
				return false
			}
			h.Protocols = append(h.Protocols, string(name.b))
		}
		return !list.failed
	case kind == extensionSupportedVersions:
		h.Version = 0x0304
		length = c.number(1)
	}
	c.skip(length)
	return !c.failed
}

// cursor reads fields; failed is set when one is longer than the rest.
type cursor struct {
	b      []byte
	failed bool
}

// number reads a number of n bytes.
func (c *cursor) number(n int) (value int) {
	for _, octet := range c.take(n) {
		value = value<<8 | int(octet)
	}
	return value
}

// sub reads a field whose length is in the n bytes before it.
func (c *cursor) sub(n int) cursor { return cursor{b: c.take(c.number(n)), failed: c.failed} }

func (c *cursor) skip(n int) { c.take(n) }

func (c *cursor) take(n int) []byte {
	if c.failed || n > len(c.b) {
		c.failed = true
		return nil
	}
	field := c.b[:n]
	c.b = c.b[n:]
	return field
}

// VersionName returns OpenSSL's name of h's version, "" for one that it does not know.
func (h Hello) VersionName() string {
	switch h.Version {
	case 0x0002:
		return "SSLv2"
	case 0x0300:
		return "SSLv3"
	case 0x0301:
		return "TLSv1"
	case 0x0302:
		return "TLSv1.1"
	case 0x0303:
		return "TLSv1.2"
	case 0x0304:
		return "TLSv1.3"
	}
	return ""
}

// ProtocolList returns the protocols with commas between them.
func (h Hello) ProtocolList() string { return strings.Join(h.Protocols, ",") }
