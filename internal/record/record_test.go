package record_test

import (
	"context"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
)

// key is of a value between the two.
type key struct{}

// Nested filters share one record, so that the proxy fills what each of them reads.
func TestWith(t *testing.T) {
	if record.From(t.Context()) != nil {
		t.Error("a record without With")
	}
	outer, r := record.With(t.Context())
	inner, same := record.With(context.WithValue(outer, key{}, 1))
	if same != r || record.From(inner) != r || record.From(outer) != r {
		t.Error("a second record")
	}
}

// What an attempt has waited for its client is not its target's time, and no other attempt's.
func TestTargetTime(t *testing.T) {
	var none *record.Recorder
	if d := none.TargetTime(time.Second); d != time.Second {
		t.Errorf("without a record: %v", d)
	}
	none.AwaitedClient(time.Second)
	var r record.Recorder
	var kept time.Duration
	r.StartAttempt("a", time.Now().Add(-time.Hour))
	r.AwaitedClient(10 * time.Minute)
	r.AwaitedClient(10 * time.Minute)
	if d := r.TargetTime(15 * time.Minute); d != 0 {
		t.Errorf("of less than the client's time: %v", d)
	}
	r.KeepTargetTime(&kept)
	r.HeaderReceived(101)
	if want := r.TimeToHeader() - 20*time.Minute; kept != want || r.TargetTime(time.Hour) != 40*time.Minute {
		t.Errorf("kept %v, want %v; of an hour %v", kept, want, r.TargetTime(time.Hour))
	}
	r.FinishAttempt(culvert.Attempt{Target: "a", Status: 101})
	first := kept
	r.StartAttempt("b", time.Now())
	r.HeaderReceived(101)
	if d := r.TargetTime(time.Hour); d != time.Hour || kept != first {
		t.Errorf("of the next attempt: %v, kept %v", d, kept)
	}
}

// An attempt is one entry, from its header on.
func TestAttempt(t *testing.T) {
	var r record.Recorder
	r.HeaderReceived(200) // of an upgrade without a proxy
	if len(r.Attempts) != 0 {
		t.Errorf("no attempt runs: %+v", r.Attempts)
	}
	r.StartAttempt("a", time.Now())
	r.FinishAttempt(culvert.Attempt{Target: "a"})
	start := time.Now().Add(-time.Second)
	r.StartAttempt("b", start)
	if d := r.TimeToHeader(); d != 0 {
		t.Errorf("before the header: %v", d)
	}
	r.Connected(time.Time{})
	r.Connected(time.Now().Add(-time.Second / 2))
	r.HeaderReceived(200)
	connect := r.Attempts[1].TimeToConnect
	if connect <= 0 || connect > time.Second {
		t.Errorf("connected after %v", connect)
	}
	d := r.TimeToHeader()
	if len(r.Attempts) != 2 || r.Attempts[1] != (culvert.Attempt{Target: "b", Start: start, Status: 200, TimeToConnect: connect, TimeToHeader: d}) || d < time.Second {
		t.Errorf("at the header: %+v", r.Attempts)
	}
	r.FinishAttempt(culvert.Attempt{Target: "b", Status: 200, TimeToHeader: time.Hour, Received: 2})
	if len(r.Attempts) != 2 || r.Attempts[1] != (culvert.Attempt{Target: "b", Start: start, Status: 200, TimeToConnect: connect, TimeToHeader: d, Received: 2}) {
		t.Errorf("at the end: %+v", r.Attempts)
	}
	var none *record.Recorder
	none.StartAttempt("", time.Now())
	none.HeaderReceived(200)
	none.Connected(time.Now())
	none.FinishAttempt(culvert.Attempt{})
}
