package deadline_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// filter is the writer of a filter.
type filter struct {
	http.ResponseWriter
	transforms bool
	output     *deadline.Deadline
}

func (f *filter) Unwrap() http.ResponseWriter         { return f.ResponseWriter }
func (f *filter) Transforms() bool                    { return f.transforms }
func (f *filter) BoundOutput(d *deadline.Deadline)    { f.output = d }
func around(w http.ResponseWriter, does bool) *filter { return &filter{w, does, nil} }

// After PassOn a Deadline bounds what the outermost transforming filter writes, and not what is written to it.
func TestPassOn(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		left     bool
		one, two []setting
	}{
		"left":    {true, []setting{{20 * s, 25 * s}, {41 * s, 46 * s}, {61 * s, 66 * s}}, []setting{{46 * s, expired}, {61 * s, 66 * s}}},
		"stopped": {false, []setting{{20 * s, 25 * s}}, nil},
	} {
		for major, want := range map[int][]setting{1: test.one, 2: test.two} {
			t.Run(name+" over HTTP/"+string(rune('0'+major)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &writer{start: time.Now()}
					outer := around(around(w, false), true)
					inner := around(around(outer, false), true)
					var d deadline.Deadline
					r := &http.Request{ProtoMajor: major}
					d.StartWrites(clientside.New(inner, r), r, 4*s)
					d.PassOn()
					if inner.output != nil || outer.output == nil {
						t.Fatal("not passed on to the outermost")
					}
					d.Begin()
					time.Sleep(20 * s) // the filters are slow
					outer.output.Begin()
					time.Sleep(s)
					outer.output.End()
					d.End()
					if test.left {
						d.Leave()
					}
					d.Stop()
					time.Sleep(20 * s)
					outer.output.Begin() // at its end
					time.Sleep(20 * s)
					outer.output.End()
					outer.output.Finish()
					time.Sleep(time.Hour)
					if !slices.Equal(w.writes, want) {
						t.Errorf("deadlines %v, want %v", w.writes, want)
					}
				})
			})
		}
	}
}

// Without a transforming filter PassOn changes nothing.
func TestPassOnToNone(t *testing.T) {
	w := &writer{start: time.Now()}
	f := around(w, false)
	var d deadline.Deadline
	r := &http.Request{ProtoMajor: 1}
	d.StartWrites(clientside.New(f, r), r, time.Hour)
	d.PassOn()
	d.Begin()
	d.End()
	d.Leave()
	if f.output != nil || len(w.writes) != 1 {
		t.Errorf("passed on: %v; deadlines %v", f.output != nil, w.writes)
	}
}
