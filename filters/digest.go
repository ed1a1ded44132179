package filters

import (
	"net/http"
	"slices"
	"strings"
)

// digests are the fields with a checksum of the content as it is encoded (RFC 9530, RFC 3230, RFC 1864). What
// encodes, decodes or replaces the content takes them away: its receiver would take it for damaged.
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

func deleteDigests(h http.Header) {
	for _, name := range digests {
		delete(h, name)
	}
	if h["Trailer"] != nil {
		deleteDigestTrailers(h)
	}
}

// deleteDigestTrailers takes the announcement of trailers with a checksum away, without which net/http sends none.
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
