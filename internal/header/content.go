package header

import (
	"net/http"
	"slices"
	"strings"
)

// digests are the fields with a checksum of the encoded content (RFC 9530, RFC 3230, RFC 1864).
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// ContentRewritten deletes from h, the header of a response, what is no longer true when the content becomes another one:
// its length, its validators, its digests, and that parts of it can be requested.
func ContentRewritten(h http.Header) {
	delete(h, "Etag")
	delete(h, "Last-Modified")
	bytesChanged(h)
}

// ContentRecoded is ContentRewritten for content that is the same in another encoding: Last-Modified is kept, and so is the
// ETag, as a weak one.
func ContentRecoded(h http.Header) {
	WeakenETag(h)
	bytesChanged(h)
}

func bytesChanged(h http.Header) {
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	DeleteDigests(h)
}

// WeakenETag makes a strong ETag a weak one: the content is equivalent to the one that it was made for, but does not consist
// of the same bytes (RFC 9110 section 8.8.1).
func WeakenETag(h http.Header) {
	if tag := h["Etag"]; len(tag) > 0 && tag[0] != "" && !strings.HasPrefix(tag[0], "W/") {
		h["Etag"] = []string{"W/" + tag[0]}
	}
}

// DeleteDigests deletes the digests of the content from h, and their names from Trailer. A filter that encodes,
// decodes or replaces the content must call it: the client would take the content for damaged. At the end of the content it must
// call DeleteDigestTrailers, too.
func DeleteDigests(h http.Header) {
	for _, name := range digests {
		delete(h, name)
	}
	if h["Trailer"] != nil {
		deleteDigestTrailers(h)
	}
}

// deleteDigestTrailers deletes the names of digests from Trailer. net/http sends no trailer that is not announced there, unless
// its name has the prefix http.TrailerPrefix.
func deleteDigestTrailers(h http.Header) {
	var names []string
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if name != "" && !slices.Contains(digests, name) {
				names = append(names, name)
			}
		}
	}
	if delete(h, "Trailer"); names != nil {
		h["Trailer"] = names
	}
}

// DeleteDigestTrailers deletes the digests of the content from the trailers that were not announced. h is the header of a
// response when its handler has returned.
func DeleteDigestTrailers(h http.Header) {
	for name := range h {
		if trailer, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && slices.Contains(digests, http.CanonicalHeaderKey(trailer)) {
			delete(h, name)
		}
	}
}

// DeleteTrailers deletes all trailers that were not announced, as DeleteDigestTrailers does.
func DeleteTrailers(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(h, name)
		}
	}
}
