package engine

import (
	"strings"
	"testing"
)

// A part has the same bytes however the whole is received.
func TestWindow(t *testing.T) {
	const whole = "0123456789"
	for piece := 1; piece <= len(whole); piece++ {
		for from := range len(whole) {
			for to := from; to <= len(whole); to++ {
				part := window{from: int64(from), to: int64(to)}
				var got strings.Builder
				for at := 0; at < len(whole); at += piece {
					p := []byte(whole[at:min(at+piece, len(whole))])
					if n, err := part.write(&got, p); n != len(p) || err != nil {
						t.Fatal(n, err)
					}
				}
				if got.String() != whole[from:to] {
					t.Errorf("%d to %d in pieces of %d: %q", from, to, piece, got.String())
				}
			}
		}
	}
}
