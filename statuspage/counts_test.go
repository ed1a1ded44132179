package statuspage

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

func ended(p *Page, status int, group string, attempts ...culvert.Attempt) {
	p.RequestStarted(nil)
	p.RequestEnded(nil, filters.Observation{ResponseStats: culvert.ResponseStats{Status: status}, Result: &culvert.Result{Upstream: group, Attempts: attempts}})
}

// Rates are means of the last ten whole seconds: what has just begun does not count, and what is older neither.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			for range 4 {
				ended(p, 200, "")
			}
			ended(p, 503, "")
			time.Sleep(time.Second)
		}
		want := Traffic{150, 30, 5, 1}
		if got := p.Snapshot().Requests; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		for range 100 {
			ended(p, 500, "")
		}
		time.Sleep(p.o.Interval / 2)
		want.Total, want.Errors = 250, 130
		if got := p.Snapshot().Requests; got != want {
			t.Errorf("in the same second %+v, want %+v", got, want)
		}
		time.Sleep(11 * time.Second)
		want.Rate, want.ErrorRate = 0, 0
		if got := p.Snapshot().Requests; got != want {
			t.Errorf("later %+v, want %+v", got, want)
		}
		if got := p.Snapshot().InFlight; got != 0 {
			t.Errorf("%d in flight", got)
		}
	})
}

// An error of a target is a status from 500 on, or a failure that is not the client's or the gateway's.
func TestErrorsOfTargets(t *testing.T) {
	for _, test := range []struct {
		attempt culvert.Attempt
		want    bool
	}{
		{culvert.Attempt{Status: 200}, false},
		{culvert.Attempt{Status: 499}, false},
		{culvert.Attempt{Status: 500}, true},
		{culvert.Attempt{Err: &culvert.Error{Kind: culvert.DialFailed}}, true},
		{culvert.Attempt{Status: 200, Err: &culvert.Error{Kind: culvert.BodyBroken}}, true},
		{culvert.Attempt{Status: 200, Err: &culvert.Error{Kind: culvert.ClientGone}}, false},
		{culvert.Attempt{Err: &culvert.Error{Kind: culvert.Internal}}, false},
		{culvert.Attempt{Err: errors.New("other")}, true},
	} {
		if got := targetFailed(test.attempt); got != test.want {
			t.Errorf("%+v: %v", test.attempt, got)
		}
	}
}

// However many targets requests are sent to, a bounded number is counted, and those that are silent make room.
func TestSubjectsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 * maxSubjects {
			ended(p, 200, "app", culvert.Attempt{Target: fmt.Sprint(i)})
		}
		if n := len(p.counts.windows); n != maxSubjects {
			t.Errorf("%d subjects", n)
		}
		time.Sleep((rateSeconds + 1) * time.Second)
		ended(p, 200, "other", culvert.Attempt{Target: "new"})
		if n := len(p.counts.windows); n != 2 {
			t.Errorf("%d subjects when others are silent", n)
		}
	})
}

func TestFormats(t *testing.T) {
	for want, got := range map[string]string{
		"0 s": age(0.9), "59 s": age(59), "1 min 0 s": age(60), "1 h 1 min": age(3660), "1 d 1 h": age(90000),
		"1023 B": size(1023), "1.0 KiB": size(1024), "1.5 MiB": size(3 << 19), "4096.0 PiB": size(4 << 60), "0.3/s": rate(.26),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := cut(string(make([]byte, 299)) + "ä"); len(got) != 299+len("…") {
		t.Errorf("a text of %d bytes", len(got))
	}
}
