package engine_test

import (
	"strings"
	"testing"
)

func TestFLV(t *testing.T) {
	const header = "FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00"
	long := strings.Repeat("0123456789", 10000)
	s := serve(t, with(server(`root html; location / { flv; }`), "html/x.flv", "0123456789", "html/long.flv", long, "html/dir/index.html", "index"))
	for _, tt := range []struct{ target, fields, body string }{
		{"/x.flv", "", "0123456789"},
		{"/x.flv?start=4", "", header + "456789"},
		{"/x.flv?start=0", "", "0123456789"},
		{"/x.flv?start=10", "", "0123456789"},
		{"/x.flv?start=-4", "", "0123456789"},
		{"/x.flv?start=+4", "", "0123456789"},
		{"/x.flv?start=4", "Range: bytes=1-2", "LV"},
		{"/x.flv?start=4", "Range: bytes=11-14", "\x00\x0045"},
		{"/x.flv?start=4", "Range: bytes=-2", "89"},
		{"/long.flv?start=5", "", header + long[5:]},
		{"/long.flv?start=5", "Range: bytes=20-90000", long[12:89993]},
		{"/dir/", "", "index"},
	} {
		equal(t, tt.target+" "+tt.fields, s.get(tt.target, tt.fields).body, tt.body)
	}
	equal(t, "length", s.request("HEAD", "/x.flv?start=4").Header.Get("Content-Length"), "19")
	equal(t, "PUT", s.request("PUT", "/x.flv").StatusCode, 405)
	equal(t, "none", s.get("/none").StatusCode, 404)
	several := s.get("/x.flv?start=4", "Range: bytes=0-2,13-14").body
	if !strings.Contains(several, "\r\n\r\nFLV\r\n") || !strings.Contains(several, "\r\n\r\n45\r\n") {
		t.Errorf("%q", several)
	}
}
