package statuspage

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/errs"
)

// rateSeconds is the number of seconds over which rates are means.
const rateSeconds = 10

// maxSubjects bounds the groups and targets that are counted.
const maxSubjects = 4096

// counts are those of requests, in total and by subject.
type counts struct {
	running atomic.Int64

	mu      sync.Mutex // guards what follows
	all     window
	windows map[subject]*window
	swept   int64 // the second of the last call of forget
}

// subject is a group, by its name, or one of its targets.
type subject struct{ group, target string }

// window counts requests, in total and for each of the last seconds.
type window struct {
	total, errors int64
	last          int64 // the second of the last request
	seconds       [rateSeconds + 1]second
}

type second struct{ unix, requests, errors int64 }

func (w *window) add(unix int64, failed bool) {
	s := &w.seconds[unix%int64(len(w.seconds))]
	if s.unix != unix {
		*s = second{unix: unix}
	}
	w.total++
	s.requests++
	if failed {
		w.errors++
		s.errors++
	}
	w.last = unix
}

// traffic returns the counts, and the rates of the seconds before the one that has begun.
func (w *window) traffic(unix int64) Traffic {
	var requests, errors int64
	for _, s := range w.seconds {
		if s.unix < unix && s.unix >= unix-rateSeconds {
			requests, errors = requests+s.requests, errors+s.errors
		}
	}
	return Traffic{Total: w.total, Errors: w.errors, Rate: float64(requests) / rateSeconds, ErrorRate: float64(errors) / rateSeconds}
}

// RequestStarted implements filters.Metrics.
func (p *Page) RequestStarted(*http.Request) { p.counts.running.Add(1) }

// RequestEnded implements filters.Metrics.
func (p *Page) RequestEnded(_ *http.Request, o filters.Observation) {
	c, at := &p.counts, time.Now().Unix()
	c.running.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := o.Status >= 500
	c.all.add(at, failed)
	if o.Result == nil || o.Result.Upstream == "" {
		return
	}
	c.add(subject{group: o.Result.Upstream}, at, failed)
	for _, a := range o.Result.Attempts {
		c.add(subject{o.Result.Upstream, a.Target}, at, targetFailed(a))
	}
}

// targetFailed reports whether an attempt counts as an error of its target.
func targetFailed(a culvert.Attempt) bool {
	if e := errs.As(a.Err); e != nil && (e.ClientSide() || e.Kind == culvert.Internal) {
		return false
	}
	return a.Err != nil || a.Status >= 500
}

// add counts a request of s, unless there are too many subjects. The caller holds c.mu.
func (c *counts) add(s subject, unix int64, failed bool) {
	w := c.windows[s]
	if w == nil {
		if len(c.windows) >= maxSubjects {
			c.forget(unix)
		}
		if len(c.windows) >= maxSubjects {
			return
		}
		w = new(window)
		c.windows[s] = w
	}
	w.add(unix, failed)
}

// forget makes room: what has had no request for a while is counted anew. The caller holds c.mu.
func (c *counts) forget(unix int64) {
	if unix == c.swept {
		return
	}
	c.swept = unix
	for s, w := range c.windows {
		if w.last < unix-rateSeconds {
			delete(c.windows, s)
		}
	}
}

// of returns the traffic of s. The caller holds c.mu.
func (c *counts) of(s subject, unix int64) Traffic {
	if w := c.windows[s]; w != nil {
		return w.traffic(unix)
	}
	return Traffic{}
}
