package conf_test

import (
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "1k": 1024, "2K": 2048, "3m": 3 << 20, "1G": 1 << 30,
		"": -1, "k": -1, "1x": -1, "-1": -1, "1.5m": -1, "99999999999g": -1, "1kk": -1,
	} {
		got, ok := conf.Size(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "60": time.Minute, "60s": time.Minute, "1m30s": 90 * time.Second, "500ms": time.Second / 2,
		"1h 30m": 90 * time.Minute, "1d": day, "2w": 14 * day, "1M": 30 * day, "1y": 365 * day, "1m500ms": time.Minute + time.Second/2,
		"": -1, "s": -1, "1x": -1, "-1": -1, "1s1m": -1, "1m1m": -1, "1 1": -1, "1.5s": -1, "9999999999y": -1,
	} {
		got, ok := conf.Duration(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
