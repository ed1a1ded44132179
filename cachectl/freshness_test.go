package cachectl_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/cachectl"
)

// Each line is what Chromium 156 and Firefox ESR 153 did with a 410 on the second
// visit: "explicit" is false where they served it without another request to the server.
func TestExplicitFreshness(t *testing.T) {
	tests := []struct {
		field, value string
		explicit     bool
	}{
		{"Cache-Control", "max-age=60", true},
		{"Cache-Control", "max-age=0", true},
		{"Cache-Control", "no-cache", true},
		{"Cache-Control", "No-Store", true},
		{"Cache-Control", "private, no-cache", true},
		{"Cache-Control", "public,MAX-AGE=5", true},
		{"Cache-Control", "private", false},
		{"Cache-Control", "public", false},
		{"Cache-Control", "must-revalidate", false},
		{"Cache-Control", "s-maxage=0", false},
		{"Cache-Control", "max-age", false},
		{"Cache-Control", "max-age=", false},
		{"Cache-Control", "max-age=-1", false},
		{"Cache-Control", "max-age=abc", false},
		{"Cache-Control", `no-cache="Set-Cookie"`, false},
		{"Cache-Control", "x-no-store", false},
		{"Pragma", "no-cache", true},
		{"Pragma", "No-Cache", true},
		{"Pragma", "cache", false},
		{"Vary", "*", true},
		{"Vary", "Cookie, *", true},
		{"Vary", "Cookie", false},
		{"Expires", "0", true},
		{"Expires", "Thu, 01 Jan 1970 00:00:01 GMT", true},
		{"Expires", "Thu, 01 Jan 1970 00:00:00 GMT", false},
		{"Expires", "Fri, 01 Jan 2100 00:00:00 GMT", true},
		{"Expires", "-1", false},
		{"Expires", "never", false},
		{"Etag", `"a"`, false},
		{"Last-Modified", "Fri, 01 Jan 2021 00:00:00 GMT", false},
		{"Date", "Fri, 01 Jan 2021 00:00:00 GMT", false},
	}
	match := cachectl.ExplicitFreshness()
	for _, test := range tests {
		h := http.Header{test.field: {test.value}}
		if got := match(&cachectl.Response{Status: 410, Header: h}); got != test.explicit {
			t.Errorf("%s: %s: explicit %v, want %v", test.field, test.value, got, test.explicit)
		}
	}
	for name, h := range map[string]http.Header{
		"Pragma beside a Cache-Control that states none": {"Pragma": {"no-cache"}, "Cache-Control": {"private"}},
		"the second Expires":                             {"Expires": {"never", "0"}},
		"nothing":                                        {},
	} {
		if match(&cachectl.Response{Status: 410, Header: h}) {
			t.Errorf("%s: explicit", name)
		}
	}
	if !match(&cachectl.Response{Header: http.Header{"Cache-Control": {"private", "no-store"}}}) {
		t.Error("the second line of Cache-Control was not read")
	}
}
