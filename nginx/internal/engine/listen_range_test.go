package engine_test

import (
	"slices"
	"strings"
	"testing"
)

// A range of ports is an address for each.
func TestListenRange(t *testing.T) {
	for text, want := range map[string][]string{
		"127.0.0.1:8000-8002":     {"127.0.0.1:8000", "127.0.0.1:8001", "127.0.0.1:8002"},
		"8000-8001":               {"0.0.0.0:8000", "0.0.0.0:8001"},
		"[::1]:8000-8000":         {"[::1]:8000"},
		"[::]:8-9 ipv6only=off":   {"[::]:8", "[::]:9", "0.0.0.0:8", "0.0.0.0:9"},
		"127.0.0.1:65534-65535":   {"127.0.0.1:65534", "127.0.0.1:65535"},
		"127.0.0.1:8001-8000":     nil,
		"127.0.0.1:8000-":         nil,
		"127.0.0.1:0-1":           nil,
		"127.0.0.1:65535-65536":   nil,
		"127.0.0.1:-1":            nil,
		"127.0.0.1:1-2-3":         nil,
		"8000-8001; listen 8001 ": nil,
	} {
		s, err := load(t, server("listen "+text+";"))
		if want == nil {
			if err == nil || !strings.Contains(err.Error(), "invalid port") && !strings.Contains(err.Error(), "a duplicate listen") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, l := range s.engine.Listeners() {
			got = append(got, l.Address)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
