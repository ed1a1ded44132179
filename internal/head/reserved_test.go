package head

import "testing"

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
