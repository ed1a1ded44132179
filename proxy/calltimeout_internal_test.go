package proxy

import (
	"math"
	"regexp"
	"testing"
	"time"
)

func TestParseCallTimeout(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"0n": 0, "1H": time.Hour, "2M": 2 * time.Minute, "30S": 30 * time.Second, "4m": 4 * time.Millisecond,
		"5u": 5 * time.Microsecond, "00000006n": 6, "99999999H": math.MaxInt64,
		"": -1, "n": -1, "1": -1, "1h": -1, "-1n": -1, "+1n": -1, " 1n": -1, "1 n": -1, "123456789n": -1, "1_0n": -1, "0x1n": -1,
	} {
		got, ok := parseCallTimeout(s)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %v, want %v", s, got, want)
		}
	}
}

// The grammar of a TimeoutValue is that of gRPC, and no time is negative.
func FuzzParseCallTimeout(f *testing.F) {
	for _, s := range []string{"1n", "99999999H", "+1S", "1", ""} {
		f.Add(s)
	}
	valid := regexp.MustCompile(`^[0-9]{1,8}[HMSmun]$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseCallTimeout(s)
		if ok != valid.MatchString(s) || got < 0 {
			t.Errorf("%q: %v, %v", s, got, ok)
		}
	})
}
