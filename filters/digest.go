package filters

import "net/http"

// digests are the fields with a checksum of the content as it is encoded (RFC 9530, RFC 3230, RFC 1864). What
// encodes, decodes or replaces the content takes them away: its receiver would take it for damaged.
var digests = []string{"Content-Digest", "Repr-Digest", "Digest", "Content-Md5"}

func deleteDigests(h http.Header) {
	for _, name := range digests {
		delete(h, name)
	}
}
