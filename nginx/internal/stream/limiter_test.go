package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A rate permits the bytes of the first second at once, and then those of each second.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l := limiter{rate: 1000, began: start.Unix()}
		moved := 0
		for moved < 5000 {
			n, ok := l.wait(t.Context(), 300)
			if !ok || n > 300 || !l.add(t.Context(), n) {
				t.Fatalf("%d bytes, %t", n, ok)
			}
			moved += n
			if most := 1000 * (int(time.Since(start)/time.Second) + 1); moved > most {
				t.Fatalf("%d bytes after %v", moved, time.Since(start))
			}
		}
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("5000 bytes in %v", took)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if l.add(ended, 1000) {
			t.Error("it waits for what has ended")
		}
		if n, ok := (&limiter{}).wait(t.Context(), 7); n != 7 || !ok {
			t.Errorf("without a rate: %d, %t", n, ok)
		}
	})
}
