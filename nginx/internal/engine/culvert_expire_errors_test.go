package engine_test

import "testing"

// With culvert_expire_errors off error pages say as much as nginx's do about caching: nothing.
func TestExpireErrors(t *testing.T) {
	s := serve(t, server(`location / { return 410; } location /off { culvert_expire_errors off; return 410; location /off/on { culvert_expire_errors on; return 410; } }
		location /set { culvert_expire_errors off; add_header Cache-Control no-store always; return 410; }`))
	for target, want := range map[string]string{"/": "private, no-cache", "/off": "", "/off/on": "private, no-cache", "/set": "no-store"} {
		got := s.get(target)
		equal(t, target, got.Header.Get("Cache-Control"), want)
		equal(t, target, got.Header["Expires"] != nil, want == "private, no-cache")
	}
}
