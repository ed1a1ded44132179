package result_test

import (
	"context"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/result"
)

// key is of a value between the two.
type key struct{}

// Nested filters share one record, so that the proxy fills what each of them reads.
func TestWith(t *testing.T) {
	if result.From(t.Context()) != nil {
		t.Error("a record that nobody asked for")
	}
	outer, record := result.With(t.Context())
	inner, same := result.With(context.WithValue(outer, key{}, 1))
	if same != record || result.From(inner) != record || result.From(outer) != record {
		t.Error("a second record")
	}
}

// What an attempt has waited for its client is none of its target's time, and no other attempt's.
func TestTargetTime(t *testing.T) {
	if d := result.TargetTime(nil, time.Second); d != time.Second {
		t.Errorf("without a record: %v", d)
	}
	result.AwaitedClient(nil, time.Second)
	var r result.Result
	var kept time.Duration
	result.Begin(&r, "a", time.Now().Add(-time.Hour))
	result.AwaitedClient(&r, 10*time.Minute)
	result.AwaitedClient(&r, 10*time.Minute)
	if d := result.TargetTime(&r, 15*time.Minute); d != 0 {
		t.Errorf("of less than the client's time: %v", d)
	}
	result.KeepWaited(&r, &kept)
	result.Arrived(&r, 101)
	if want := result.TimeToHeader(&r) - 20*time.Minute; kept != want || result.TargetTime(&r, time.Hour) != 40*time.Minute {
		t.Errorf("kept %v, want %v; of an hour %v", kept, want, result.TargetTime(&r, time.Hour))
	}
	result.Finish(&r, result.Try{Target: "a", Status: 101})
	first := kept
	result.Begin(&r, "b", time.Now())
	result.Arrived(&r, 101)
	if d := result.TargetTime(&r, time.Hour); d != time.Hour || kept != first {
		t.Errorf("of the next attempt: %v, kept %v", d, kept)
	}
}

// An attempt is one entry, from its header on.
func TestAttempt(t *testing.T) {
	var r result.Result
	result.Arrived(&r, 200) // of an upgrade without a proxy
	if len(r.Tries) != 0 {
		t.Errorf("no attempt runs: %+v", r.Tries)
	}
	result.Begin(&r, "a", time.Now())
	result.Finish(&r, result.Try{Target: "a"})
	start := time.Now().Add(-time.Second)
	result.Begin(&r, "b", start)
	if d := result.TimeToHeader(&r); d != 0 {
		t.Errorf("before the header: %v", d)
	}
	result.Connected(&r, time.Time{})
	result.Connected(&r, time.Now().Add(-time.Second/2))
	result.Arrived(&r, 200)
	connect := r.Tries[1].Connect
	if connect <= 0 || connect > time.Second {
		t.Errorf("connected after %v", connect)
	}
	d := result.TimeToHeader(&r)
	if len(r.Tries) != 2 || r.Tries[1] != (result.Try{Target: "b", Start: start, Status: 200, Connect: connect, Header: d}) || d < time.Second {
		t.Errorf("at the header: %+v", r.Tries)
	}
	result.Finish(&r, result.Try{Target: "b", Status: 200, Header: time.Hour, Received: 2})
	if len(r.Tries) != 2 || r.Tries[1] != (result.Try{Target: "b", Start: start, Status: 200, Connect: connect, Header: d, Received: 2}) {
		t.Errorf("at the end: %+v", r.Tries)
	}
	result.Begin(nil, "", time.Now())
	result.Arrived(nil, 200)
	result.Connected(nil, time.Now())
	result.Finish(nil, result.Try{})
}
