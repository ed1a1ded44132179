package limit_test

import (
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/limit"
)

func TestBuckets(t *testing.T) {
	b, start := limit.NewBuckets(2), time.Now()
	for i, tt := range []struct {
		key   string
		after time.Duration
		want  int64
		ok    bool
	}{
		{"a", 0, 0, true},
		{"a", 0, 1000, true},
		{"a", 0, 2000, false},                      // more than most, so not added
		{"a", 500 * time.Millisecond, 1500, false}, // half a request has leaked
		{"b", 500 * time.Millisecond, 0, true},
		{"a", time.Second, 1000, true},
		{"c", time.Second, 0, true}, // removes b, which was used least recently
		{"b", time.Second, 0, true},
	} {
		if got, ok := b.Take(tt.key, 1000, 1000, start.Add(tt.after)); got != tt.want || ok != tt.ok {
			t.Errorf("request %d: got %d, %v, want %d, %v", i, got, ok, tt.want, tt.ok)
		}
	}
	b.GiveBack("b")
	if got, _ := b.Take("b", 1, 1000, start.Add(time.Second)); got != 0 {
		t.Errorf("after a request was given back: got %d", got)
	}
}

func TestRunning(t *testing.T) {
	r := limit.NewRunning(1)
	enter := func(key string, wantIn, wantKnown bool) {
		t.Helper()
		if in, known := r.Enter(key, 2); in != wantIn || known != wantKnown {
			t.Errorf("%s: got %v, %v, want %v, %v", key, in, known, wantIn, wantKnown)
		}
	}
	enter("a", true, true)
	enter("a", true, true)
	enter("a", false, true)  // too many
	enter("b", false, false) // no room
	r.Leave("a")
	r.Leave("a")
	enter("b", true, true)
}
