package engine_test

import (
	"strings"
	"testing"
)

// If-Range is compared with the Last-Modified that clients know, which add_header may change.
func TestIfRangeOfChangedTime(t *testing.T) {
	s := serve(t, with(server(`root html; add_header Last-Modified "Mon, 28 Sep 1970 06:00:00 GMT";
		location /plain { add_header X-A a; } location /hidden { add_header Last-Modified ""; }`), "html/a", "0123456789", "html/plain", "0123456789", "html/hidden", "0123456789"))
	own := s.get("/plain").Header.Get("Last-Modified")
	for _, tt := range []struct {
		target, since string
		status        int
	}{
		{"/a", "Mon, 28 Sep 1970 06:00:00 GMT", 206}, {"/a", own, 200}, {"/plain", own, 206}, {"/plain", "Mon, 28 Sep 1970 06:00:00 GMT", 200}, {"/hidden", own, 200},
	} {
		equal(t, tt.target+" "+tt.since, s.get(tt.target, "Range: bytes=0-1", "If-Range: "+tt.since).StatusCode, tt.status)
	}
	if got := s.header("GET /a HTTP/1.1\r\nHost: a\r\n\r\n"); strings.Index(got, "Last-Modified:") < strings.Index(got, "ETag:") {
		t.Errorf("Last-Modified is not among the added fields: %q", got)
	}
}
