package simulate

import (
	"net/http"
	"slices"
)

// refusals are the statuses by which a request is refused. What net/http's server lets through is refused when a
// target is at hand, so that the wait for one may end before.
var refusals = []int{400, 403, 408, 413, 414, 417, 426, 431, 501, 503, 504, 505}

// malformed: what is malformed is refused and reaches no target, and no body that breaks off in its framing has an
// end. What a target sees of a tolerated one is looked at as that of any request.
func (r *ruler) malformed() {
	if r.client.Kind != Malformed {
		return
	}
	m := &malformations[r.e.Malformed]
	for _, s := range r.sights {
		switch {
		case m.fate == refused || m.fate == declined:
			r.fail("malformed", "%s saw a request that has %s", s.Target, m.name)
		case m.fate == broken && s.Whole:
			r.fail("malformed", "%s saw a whole request that has %s", s.Target, m.name)
		}
		if len(s.Header["Content-Length"]) > 1 || s.Header.Get("Http2-Settings") != "" && s.Header.Get("Upgrade") != "" {
			r.fail("malformed", "%s saw fields that must not be forwarded: %v", s.Target, s.Header)
		}
	}
	may := r.w.passage(r.e, r.client.Kind).last.may // a filter was first
	if (m.fate == refused || m.fate == declined) && r.o.Status != 0 && !slices.Contains(refusals, r.o.Status) && !slices.Contains(may, r.o.Status) {
		r.fail("malformed", "the client of a request that has %s saw %d %s", m.name, r.o.Status, http.StatusText(r.o.Status))
	}
}
