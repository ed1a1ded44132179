package replay

import (
	"strings"
	"testing"
	"time"
)

// A target is not to blame for the time in which the client was sending.
func TestTargetTime(t *testing.T) {
	start := time.Unix(100, 0)
	for name, test := range map[string]struct {
		body     bool
		lastRead time.Duration // behind start; 0 for none
		toHeader time.Duration
		want     time.Duration
	}{
		"no body":                 {false, 0, time.Second, time.Second},
		"unread":                  {true, 0, time.Second, time.Second},
		"read before the attempt": {true, -time.Minute, time.Second, time.Second},
		"slow upload":             {true, time.Minute, time.Minute + time.Second, time.Second},
		"early response":          {true, time.Minute, time.Second, 0},
		"no response":             {true, time.Minute, 0, 0},
	} {
		var b Body
		a := Attempt{body: &b}
		if test.body {
			b.reader = strings.NewReader("")
		}
		if test.lastRead != 0 {
			a.lastRead = start.Add(test.lastRead)
		}
		if got := a.TargetTime(start, test.toHeader); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
