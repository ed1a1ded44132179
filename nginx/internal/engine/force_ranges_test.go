package engine_test

import "testing"

// One range of a whole response is cut out of it, as far as its length is known and a filter does not change it.
func TestForceRanges(t *testing.T) {
	up := raw(t, "HTTP/1.1 200 Fine\r\nContent-Length: 10\r\nETag: \"x\"\r\nAccept-Ranges: none\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n0123456789")
	unknown := raw(t, "HTTP/1.1 200 Fine\r\nConnection: close\r\n\r\n0123456789")
	s := serve(t, server(`proxy_force_ranges on; location / { proxy_pass http://`+up+`; } location /unknown { proxy_pass http://`+unknown+`; }
		location /changed { proxy_pass http://`+up+`; sub_filter 5 five; } location /page { error_page 404 =200 /; return 404; }
		location /off { proxy_force_ranges off; proxy_pass http://`+up+`; }`))
	for _, test := range []struct {
		target, span, body, contentRange string
		status                           int
	}{
		{"/", "bytes=4-6", "456", "bytes 4-6/10", 206},
		{"/", "bytes=-2", "89", "bytes 8-9/10", 206},
		{"/", "bytes=0-1,4-5", "0123456789", "", 200},
		{"/unknown", "bytes=4-6", "0123456789", "", 200},
		{"/changed", "bytes=4-6", "01234five6789", "", 200},
		{"/page", "bytes=4-6", "0123456789", "", 200},
		{"/off", "bytes=4-6", "0123456789", "", 200},
	} {
		got := s.get(test.target, "Range: "+test.span)
		if got.StatusCode != test.status || got.body != test.body || got.Header.Get("Content-Range") != test.contentRange {
			t.Errorf("%s %s: %s %v %q", test.target, test.span, got.Status, got.Header, got.body)
		}
	}
	if got := s.get("/", "Range: bytes=4-6"); got.Status != "206 Partial Content" || got.Header.Get("Accept-Ranges") != "" || got.ContentLength != 3 {
		t.Errorf("%s %v", got.Status, got.Header)
	}
	if got := s.get("/", "Range: bytes=10-"); got.StatusCode != 416 || got.Header.Get("Content-Range") != "bytes */10" || got.Header.Get("Etag") != "" {
		t.Errorf("%s %v", got.Status, got.Header)
	}
}
