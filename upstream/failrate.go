package upstream

import "slices"

// failRate counts the outcomes of a target within Options.FailWindow, in tenths of it. The zero value
// has none.
type failRate struct {
	tenths [10]tenth
}

// tenth is the outcomes of one tenth of a window.
type tenth struct {
	number      int64 // since 1970
	all, failed int
}

// add counts an outcome at a time.
func (r *failRate) add(at, window int64, failed bool) {
	number := at / max(1, window/int64(len(r.tenths)))
	t := &r.tenths[number%int64(len(r.tenths))]
	if t.number != number {
		*t = tenth{number: number}
	}
	t.all++
	if failed {
		t.failed++
	}
}

// within returns the numbers of outcomes, and of failures among them, in the tenth of the time at and the nine before it.
func (r *failRate) within(at, window int64) (all, failed int) {
	number := at / max(1, window/int64(len(r.tenths)))
	for _, t := range r.tenths {
		if number-int64(len(r.tenths)) < t.number && t.number <= number {
			all, failed = all+t.all, failed+t.failed
		}
	}
	return all, failed
}

// hasFailures reports whether a failure was counted. A nil r has none.
func (r *failRate) hasFailures() bool {
	return r != nil && slices.ContainsFunc(r.tenths[:], func(t tenth) bool { return t.failed > 0 })
}

// countOutcome counts an outcome for Options.FailRate, and reports whether the share of failures is reached. The
// caller holds m.mu.
func (m *member) countOutcome(o *Options, at int64, failed bool) (reached bool) {
	if o.FailRate == 0 {
		return false
	}
	if m.rate == nil {
		m.rate = new(failRate)
	}
	m.rate.add(at, int64(o.FailWindow), failed)
	all, bad := m.rate.within(at, int64(o.FailWindow))
	return all >= o.FailMinRequests && float64(bad) >= o.FailRate*float64(all)-rounding
}

// countSuccess counts a success for Options.FailRate.
func (m *member) countSuccess(o *Options) {
	if o.FailRate == 0 || m.MaxFails < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.countOutcome(o, now(), false)
}
