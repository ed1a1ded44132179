package upstream_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/upstream"
)

func newGroup(t testing.TB, o upstream.Options, targets ...upstream.Target) *upstream.Group {
	t.Helper()
	g, err := upstream.New(o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// addrs returns the targets a:1, b:1 and so on for a list like "a b".
func addrs(list string) []upstream.Target {
	var targets []upstream.Target
	for name := range strings.FieldsSeq(list) {
		targets = append(targets, upstream.Target{Addr: name + ":1"})
	}
	return targets
}

// picks sends one request after the other to the targets that a group picks.
type picks struct {
	t      testing.TB
	g      *upstream.Group
	broken map[string]bool // the targets that fail
	status map[string]int  // of a target's responses; 0 means 200
}

// newPicks returns picks over a group "app" of the targets.
func newPicks(t testing.TB, o upstream.Options, targets ...upstream.Target) *picks {
	o.Name = "app"
	return &picks{t: t, g: newGroup(t, o, targets...), broken: map[string]bool{}, status: map[string]int{}}
}

func request(mutate ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	for _, m := range mutate {
		m(r)
	}
	return r
}

func from(addr string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = addr }
}

// lease picks a target, and fails the test if none is available.
func (p *picks) lease(tried ...upstream.Lease) upstream.Lease {
	p.t.Helper()
	l, err := p.g.Pick(p.t.Context(), request(), tried...)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

func name(l upstream.Lease) string {
	host, _, _ := strings.Cut(l.Addr(), ":")
	return host
}

// send sends requests until they have made n attempts, or a few more: a request that
// fails is retried on the next target. It returns the names of the targets in order; "-"
// means that none was available.
func (p *picks) send(n int, mutate ...func(*http.Request)) string {
	var order []string
	r := request(mutate...)
	for len(order) < n {
		var tried []upstream.Lease
		for {
			l, err := p.g.Pick(p.t.Context(), r, tried...)
			if err != nil {
				if len(tried) == 0 {
					order = append(order, "-")
				}
				break
			}
			host := name(l)
			order = append(order, host)
			if !p.broken[host] {
				l.Done(upstream.Outcome{Status: max(200, p.status[host])})
				break
			}
			l.Done(upstream.Outcome{Err: errors.New("broken")})
			tried = append(tried, l)
		}
	}
	return strings.Join(order, " ")
}

// want checks which targets requests are sent to.
func (p *picks) want(want string, mutate ...func(*http.Request)) {
	p.t.Helper()
	if got := p.send(len(strings.Fields(want)), mutate...); got != want {
		p.t.Errorf("requests were sent to %q, want %q", got, want)
	}
}

// refused checks the error of a pick.
func refused(t testing.TB, err error, kind culvert.ErrorKind, cause string) {
	t.Helper()
	e := errs.As(err)
	if e == nil || e.Kind != kind || e.Target != "app" || e.Err.Error() != cause || e.Status() != 503 {
		t.Errorf("error %#v, want %v: %s", e, kind, cause)
	}
}
