package deadline_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// writer records when each of its deadlines is set, and to what, both as durations since start.
type writer struct {
	http.ResponseWriter
	start         time.Time
	reads, writes []setting
	takes         time.Duration // the duration of a Write
	short         bool          // Write accepts nothing
}

type setting struct{ at, to time.Duration }

// expired and cleared stand for a deadline in the past and for none.
const expired, cleared = -1, -2

func (w *writer) setting(t time.Time) setting {
	s := setting{time.Since(w.start), t.Sub(w.start)}
	switch {
	case t.IsZero():
		s.to = cleared
	case s.to < 0:
		s.to = expired
	}
	return s
}

func (w *writer) SetReadDeadline(t time.Time) error {
	w.reads = append(w.reads, w.setting(t))
	return nil
}

func (w *writer) SetWriteDeadline(t time.Time) error {
	w.writes = append(w.writes, w.setting(t))
	return nil
}

// The deadline of an HTTP/1 connection is set before an operation, and moved when less than the timeout is left.
// That of an HTTP/2 stream is set only when an operation has taken too long.
func TestDeadline(t *testing.T) {
	const s = time.Second
	operation := func(d *deadline.Deadline, takes, pause time.Duration) {
		d.Begin()
		time.Sleep(takes)
		d.End()
		time.Sleep(pause)
	}
	for _, test := range []struct {
		name           string
		timeout, total time.Duration
		run            func(d *deadline.Deadline)
		one, two       []setting // over HTTP/1 and HTTP/2
	}{
		{"pause", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s, 20*s); operation(d, s, 20*s) },
			[]setting{{0, 5 * s}, {21 * s, 26 * s}}, nil},
		{"many", 4 * s, 0, func(d *deadline.Deadline) {
			for range 4 {
				operation(d, s/2, 0)
			}
		}, []setting{{0, 5 * s}, {3 * s / 2, 13 * s / 2}}, nil},
		{"too long", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s, s); operation(d, 20*s, 0) },
			[]setting{{0, 5 * s}, {2 * s, 7 * s}}, []setting{{7 * s, expired}}},
		{"after a pause", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s, 20*s); operation(d, 20*s, 0) },
			[]setting{{0, 5 * s}, {21 * s, 26 * s}}, []setting{{26 * s, expired}}},
		{"end of all", 4 * s, 6 * s, func(d *deadline.Deadline) { operation(d, s, 3*s); operation(d, 20*s, 0) },
			[]setting{{0, 5 * s}, {4 * s, 6 * s}}, []setting{{6 * s, expired}}},
		{"end alone, in a pause", 0, 6 * s, func(d *deadline.Deadline) { operation(d, s, 20*s) },
			[]setting{{0, 6 * s}}, nil},
		{"no bound", 0, 0, func(d *deadline.Deadline) { operation(d, time.Hour, 0) }, nil, nil},
		{"shorter", 0, 0, func(d *deadline.Deadline) {
			d.Change(40*s, time.Time{})
			operation(d, s, s)
			d.Change(0, time.Now().Add(s))
			operation(d, 20*s, 0)
		}, []setting{{0, 50 * s}, {2 * s, 3 * s}}, []setting{{3 * s, expired}}},
		{"cleared", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s, 0); d.Clear(); d.Clear() },
			[]setting{{0, 5 * s}, {s, cleared}}, nil},
		{"expired", 4 * s, 0, func(d *deadline.Deadline) { d.Begin(); _ = d.Expire() },
			[]setting{{0, 5 * s}, {0, expired}}, []setting{{0, expired}}},
		{"left", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s, s); d.Leave(); operation(d, 20*s, 0) },
			[]setting{{0, 5 * s}, {2 * s, 7 * s}}, []setting{{2 * s, 7 * s}}},
		{"left at once", 4 * s, 0, func(d *deadline.Deadline) { operation(d, s/2, 0); d.Leave() },
			[]setting{{0, 5 * s}}, []setting{{s / 2, 5 * s}}},
		{"left, end of all", 4 * s, 3 * s, func(d *deadline.Deadline) { operation(d, s, 0); d.Leave() },
			[]setting{{0, 3 * s}, {s, 6 * s}}, []setting{{s, 6 * s}}},
		{"left, end alone", 0, 3 * s, func(d *deadline.Deadline) { operation(d, s, 0); d.Leave() },
			[]setting{{0, 3 * s}, {s, cleared}}, nil},
		{"stopped in an operation", 4 * s, 0, func(d *deadline.Deadline) { d.Begin(); d.Stop(); operation(d, 20*s, 0) },
			[]setting{{0, 5 * s}}, nil},
	} {
		for major, want := range map[int][]setting{1: test.one, 2: test.two} {
			t.Run(test.name+" over HTTP/"+string(rune('0'+major)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := new(writer)
					for _, start := range []func(*deadline.Deadline, *clientside.Handle, *http.Request, time.Duration){
						(*deadline.Deadline).StartReads, (*deadline.Deadline).StartWrites,
					} {
						ctx, cancel := context.WithCancel(t.Context())
						if test.total > 0 {
							ctx, cancel = context.WithTimeout(t.Context(), test.total)
						}
						w.start = time.Now()
						var d deadline.Deadline
						r := (&http.Request{ProtoMajor: major}).WithContext(ctx)
						start(&d, clientside.New(w, r), r, test.timeout)
						test.run(&d)
						d.Stop()
						time.Sleep(time.Hour) // after the handler has returned
						cancel()
					}
					if !slices.Equal(w.reads, want) || !slices.Equal(w.writes, want) {
						t.Errorf("reads %v, writes %v, want %v", w.reads, w.writes, want)
					}
				})
			})
		}
	}
}

// A deadline is kept while the timeout is left until then. A shorter timeout keeps a later one as well.
func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		start := time.Now()
		var until time.Time
		for _, step := range []struct{ sleep, timeout, want time.Duration }{
			{0, 4 * s, 5 * s},
			{s, 4 * s, 5 * s},
			{time.Nanosecond, 4 * s, 6*s + 1},
			{0, s, 6*s + 1},
			{0, 8 * s, 11*s + 1},
			{time.Hour, 4 * s, time.Hour + 6*s + 1},
		} {
			time.Sleep(step.sleep)
			until = deadline.Extend(until, step.timeout)
			if got := until.Sub(start); got != step.want {
				t.Errorf("after %v, timeout %v: %v, want %v", time.Since(start), step.timeout, got, step.want)
			}
		}
		if far := deadline.Extend(time.Time{}, 1<<63-1); !far.After(start.AddDate(290, 0, 0)) {
			t.Errorf("the longest timeout ends at %v", far)
		}
	})
}

// The zero Deadline bounds nothing.
func TestZero(t *testing.T) {
	var d deadline.Deadline
	d.Begin()
	d.End()
	d.Clear()
	d.Stop()
	if d.Expire() == nil {
		t.Error("expired")
	}
}
