package engine_test

import "testing"

// Methods and duplicate fields are refused as nginx 1.31.5 refuses them.
func TestRequestChecks(t *testing.T) {
	s := serve(t, server(`listen 80; location / { return 200 ok; }`))
	for request, want := range map[string]int{
		"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n":                                                405,
		"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n":                                      405,
		"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nauthorization: a\r\n\r\n":          400,
		"GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: a\r\nIf-None-Match: b\r\n\r\n":          400,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n":       400,
		"GET / HTTP/1.1\r\nHost: a\r\nAccept: a\r\nAccept: b\r\nX-A: 1\r\nX-A: 2\r\n\r\n":    200,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nIf-Range: a\r\nExpect: \r\n\r\n": 200,
	} {
		if got := s.send(request); got.StatusCode != want {
			t.Errorf("%q: %d, want %d", request, got.StatusCode, want)
		}
	}
}
