package header_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

// The trailers of a request reach a copy of it, announced or not.
func TestCloneRequestKeepsTrailers(t *testing.T) {
	got := make(chan http.Header, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		out := header.CloneRequest(r.Context(), r)
		out.Header.Set("X-Copy", "1")
		_, _ = io.Copy(io.Discard, out.Body)
		if r.Header.Get("X-Copy") != "" {
			t.Error("the header is shared")
		}
		got <- out.Trailer
	}))
	defer s.Close()
	r, err := http.NewRequest("POST", s.URL, struct{ io.Reader }{strings.NewReader("x")})
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Sum": {"7"}}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if h := <-got; h.Get("X-Sum") != "7" {
		t.Errorf("trailers %v", h)
	}
}
