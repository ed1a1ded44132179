package header

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxProtocolLen bounds a protocol's name; the longest in IANA's registry has
// 12 characters.
const maxProtocolLen = 64

// RequestedProtocol returns the one protocol that r requests to switch to, as
// SanitizeRequest describes. Upgrade means nothing in HTTP/1.0 (RFC 9110 section
// 7.8) and does not exist in HTTP/2.
func RequestedProtocol(r *http.Request, allowed []string) string {
	h := r.Header
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || len(h["Upgrade"]) == 0 || !HasToken(h["Connection"], "upgrade") {
		return ""
	}
	first := ""
	for _, line := range h["Upgrade"] {
		for item := range strings.SplitSeq(line, ",") {
			name := textproto.TrimString(item)
			switch {
			case !Forwardable(name):
			case allowed != nil && !containsFold(allowed, name):
			case allowed != nil || strings.EqualFold(name, "websocket"):
				return name
			case first == "":
				first = name
			}
		}
	}
	return first
}

// Forwardable reports whether protocol is well-formed and one that may ever be
// switched to.
func Forwardable(protocol string) bool { return validProtocol(protocol) && !hidesRequests(protocol) }

// hidesRequests reports whether a connection switched to the protocol would carry
// further HTTP requests that no filter sees.
func hidesRequests(protocol string) bool {
	name, _, _ := strings.Cut(protocol, "/")
	switch strings.ToLower(name) {
	case "h2c", "h2", "http", "tls":
		return true
	}
	return false
}

// validProtocol checks protocol-name ["/" protocol-version] of RFC 9110
// section 7.8.
func validProtocol(s string) bool {
	if s == "" || len(s) > maxProtocolLen {
		return false
	}
	name, version, versioned := strings.Cut(s, "/")
	return httpguts.ValidHeaderFieldName(name) && (!versioned || httpguts.ValidHeaderFieldName(version)) // both are tokens
}

func containsFold(list []string, s string) bool {
	for _, item := range list {
		if strings.EqualFold(item, s) {
			return true
		}
	}
	return false
}
