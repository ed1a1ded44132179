package filters

import (
	"net/http"
	"slices"
	"strings"
)

// digests are the header fields with a checksum of the encoded content (RFC 9530, RFC 3230, RFC 1864). A filter that
// encodes, decodes or replaces the content must delete them: the client would take the content for damaged.
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

// deleteDigests deletes the checksums of the content from h, and their names from Trailer.
func deleteDigests(h http.Header) {
	for _, name := range digests {
		delete(h, name)
	}
	if h["Trailer"] != nil {
		deleteDigestTrailers(h)
	}
}

// deleteDigestTrailers deletes the names of trailers with a checksum from Trailer. net/http sends no trailer that is not
// announced there.
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
