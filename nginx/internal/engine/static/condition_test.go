package static_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

func TestUndated(t *testing.T) {
	const when = "Tue, 14 Nov 2023 22:13:20 GMT"
	tests := []struct {
		fields http.Header
		want   int
	}{
		{http.Header{}, 0},
		{http.Header{"If-Unmodified-Since": {when}}, 412},
		{http.Header{"If-Match": {`"x"`}}, 412},
		{http.Header{"If-Match": {"*"}}, 0},
		{http.Header{"If-None-Match": {"*"}}, 304},
		{http.Header{"If-None-Match": {`"x"`}}, 0},
		{http.Header{"If-Modified-Since": {when}}, 0},
		{http.Header{"If-Modified-Since": {when}, "If-None-Match": {"*"}}, 0},
	}
	for _, tt := range tests {
		if got := static.Undated(tt.fields); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.fields, got, tt.want)
		}
	}
}
