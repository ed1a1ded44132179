package header_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

// A request that no server has made may have no header: filters write into one.
func TestSanitizeRequestWithoutAHeader(t *testing.T) {
	r := &http.Request{Method: http.MethodGet, ProtoMajor: 1, ProtoMinor: 1}
	if protocol := header.SanitizeRequest(r, nil); protocol != "" || r.Header == nil {
		t.Errorf("protocol %q, header %v", protocol, r.Header)
	}
}
