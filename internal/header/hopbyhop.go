// Package header is the one sanitiser of header sections: it removes what belongs
// to a single connection from requests, interim responses, responses to upgrades and
// final responses, always by the same rules.
package header

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// isHopByHop reports whether the field named by its canonical key never travels past
// one connection, whether or not Connection lists it (RFC 9110 section 7.6.1, and
// HTTP2-Settings of RFC 7540 section 3.2.1). Proxy-Connection is an old client's
// mistake for Connection (RFC 9112 appendix C.2.2).
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// RemoveHopByHop deletes the hop-by-hop fields from h, and every field that
// Connection lists, except fields that are meant for all recipients: a client
// must not be able to name away the credentials, the origin or the handshake
// that later filters and the target judge it by (golang/go#50580,
// CVE-2021-32813, CVE-2024-45410).
func RemoveHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := textproto.CanonicalMIMEHeaderKey(textproto.TrimString(option))
			if !IsEndToEnd(name) {
				delete(h, name)
			}
		}
	}
	for name := range h { // a header section has fewer fields than there are names to look for
		if isHopByHop(name) {
			delete(h, name)
		}
	}
}

// IsEndToEnd reports whether the field named by its canonical key is intended for
// all recipients, so that listing it in Connection is an error of the sender
// (RFC 9110 section 7.6.1) which must have no effect.
func IsEndToEnd(name string) bool {
	switch name {
	case "Authorization", "Cache-Control", "Content-Encoding", "Content-Length",
		"Content-Range", "Content-Type", "Cookie", "Host", "Origin", "Range",
		"Set-Cookie", "Www-Authenticate":
		return true
	}
	return strings.HasPrefix(name, "Sec-")
}

// HasToken reports whether one of the comma-separated lists holds token, in any case.
func HasToken(lines []string, token string) bool {
	return httpguts.HeaderValuesContainsToken(lines, token)
}
