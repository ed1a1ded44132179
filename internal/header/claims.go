package header

import (
	"net/http"
	"net/textproto"
	"strings"
)

// IsClaim reports whether the field named by its canonical key says of a client what only a proxy in
// front can know: the client's address, or the scheme, host, port, prefix or URL that it requested.
// A client can send it as well.
//
// An underscore counts as a hyphen: CGI, FastCGI and WSGI hand on both as one variable
// (HTTP_X_FORWARDED_FOR), so that a target can't tell them apart.
func IsClaim(name string) bool {
	return isClaim(name) || isUnderscored(name) && isClaim(hyphenated(name))
}

// RemoveClaims deletes from h the fields that IsClaim names. trusted keeps those of a proxy in front
// that is trusted: all but the ones that a gateway states anew from what it knows (the address, the
// host and the scheme), and those that are written with an underscore, which no proxy sends.
func RemoveClaims(h http.Header, trusted bool) {
	for name := range h {
		if IsClaim(name) && !(trusted && !isStated(name) && !isUnderscored(name)) {
			delete(h, name)
		}
	}
}

// RemoveSpellings deletes from h the field of this name, and those that differ from it in underscores for
// hyphens alone.
func RemoveSpellings(h http.Header, name string) {
	plain := hyphenated(name)
	for spelling := range h {
		if hyphenated(spelling) == plain {
			delete(h, spelling)
		}
	}
}

// isStated reports whether a gateway states the claim by itself: for, host and proto.
func isStated(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip":
		return true
	}
	return false
}

func isClaim(name string) bool {
	switch name {
	case "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Protocol", "X-Forwarded-Scheme",
		"X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Uri",
		"X-Original-Host", "X-Original-Uri", "X-Original-Url", "X-Rewrite-Url", // Symfony, ASP.NET and others route by these (CVE-2018-14773)
		"X-Client-Ip", "X-Cluster-Client-Ip", "X-Scheme", "X-Url-Scheme", "Front-End-Https":
		return true
	}
	return isStated(name)
}

func isUnderscored(name string) bool { return strings.IndexByte(name, '_') >= 0 }

func hyphenated(name string) string {
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// RemoveUnderscored deletes from h the fields of which the name has an underscore.
func RemoveUnderscored(h http.Header) {
	for name := range h {
		if isUnderscored(name) {
			delete(h, name)
		}
	}
}

// HasUnderscored reports whether the name of a field of h has an underscore.
func HasUnderscored(h http.Header) bool {
	for name := range h {
		if isUnderscored(name) {
			return true
		}
	}
	return false
}
