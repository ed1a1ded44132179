package simulate

import (
	"net/http"
	"slices"
)

// refusals are the statuses with which a malformed request is refused. One that net/http's server accepts is refused when a
// target is picked, so that the wait for a target may end first.
var refusals = []int{400, 403, 408, 413, 414, 417, 426, 431, 501, 503, 504, 505}

// malformed: a malformed request is refused and reaches no target, and a body with broken framing never looks whole. A
// tolerated request is checked as any other.
func (r *ruler) malformed() {
	if r.client.Kind != Malformed {
		return
	}
	m := &malformations[r.e.Malformed]
	fate := r.w.plan.Gateway.fateOf(m)
	for _, s := range r.sights {
		switch {
		case fate == refused || fate == declined:
			r.fail("malformed", "%s saw a request that has %s", s.Target, m.name)
		case fate == broken && s.Whole:
			r.fail("malformed", "%s saw a whole request that has %s", s.Target, m.name)
		}
		if len(s.Header["Content-Length"]) > 1 || s.Header.Get("Http2-Settings") != "" && s.Header.Get("Upgrade") != "" {
			r.fail("malformed", "%s saw fields that must not be forwarded: %v", s.Target, s.Header)
		}
	}
	may := r.w.passage(r.e, r.client.Kind).last.may // a filter has refused it first
	if (fate == refused || fate == declined) && r.o.Status != 0 && !slices.Contains(refusals, r.o.Status) && !slices.Contains(may, r.o.Status) {
		r.fail("malformed", "the client of a request that has %s saw %d %s", m.name, r.o.Status, http.StatusText(r.o.Status))
	}
}
