package header

import (
	"net/http"
	"strings"
	"testing"
)

func TestIsReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"Content-Length": true, "content-length": true, "TRANSFER-ENCODING": true, "host": true, "Connection": true, "upgrade": true,
		"Keep-Alive": true, "te": true, "Trailer": true, "proxy-connection": true, "HTTP2-Settings": true, "Proxy-Authorization": true,
		"Content-Type": false, "X-Host": false, "Authorization": false, "": false, "content length": false,
	} {
		if got := IsReserved(name); got != want {
			t.Errorf("IsReserved(%q) = %v", name, got)
		}
	}
}

func TestRemoveMisspelt(t *testing.T) {
	other := strings.ToLower("X-A")
	h := http.Header{"content-length": {"1"}, "TRANSFER-ENCODING": {"chunked"}, "host": {"b"}, "Content-Length": {"2"}, "Upgrade": {"websocket"}, other: {"c"}, "a b": {"d"}}
	RemoveMisspelt(h)
	if len(h) != 4 || h["Content-Length"] == nil || h["Upgrade"] == nil || h[other] == nil || h["a b"] == nil {
		t.Errorf("left %v", h)
	}
}
