package header_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

func TestRemoveConditions(t *testing.T) {
	h := http.Header{"Accept": {"*/*"}}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"} {
		h.Set(name, "a")
	}
	if header.RemoveConditions(h); len(h) != 1 || h["Accept"] == nil {
		t.Error(h)
	}
}
