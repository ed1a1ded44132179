package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A response of an upstream that declares twice where it ends is refused, and a second line of a field that has one is ignored.
func TestRepeatedFieldsOfAnUpstream(t *testing.T) {
	for _, test := range []struct {
		fields string
		status int
		lines  []string // of Expires
	}{
		{"Content-Length: 2\r\n", http.StatusOK, nil},
		{"Content-Length: 2\r\ncontent-length: 2\r\n", http.StatusBadGateway, nil},
		{"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", http.StatusBadGateway, nil},
		{"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", http.StatusBadGateway, nil},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", http.StatusBadGateway, nil},
		{"Expires: one\r\nContent-Length: 2\r\nExpires: two\r\n", http.StatusOK, []string{"one"}},
	} {
		body := "ok"
		if strings.Contains(test.fields, "chunked") {
			body = "2\r\nok\r\n0\r\n\r\n"
		}
		s := serve(t, server(`error_log error.log; location / { proxy_pass http://`+raw(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n"+test.fields+"\r\n"+body)+`; }`))
		got := s.get("/")
		if got.StatusCode != test.status || !slices.Equal(got.Header["Expires"], test.lines) && test.lines != nil {
			t.Errorf("%q: status %d, Expires %q", test.fields, got.StatusCode, got.Header["Expires"])
		}
		if log := s.file("error.log"); (log != "") != (test.status == http.StatusBadGateway) {
			t.Errorf("%q: the log has %q", test.fields, log)
		}
	}
}
