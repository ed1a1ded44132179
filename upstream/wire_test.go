package upstream_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/fault"
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

// addrs makes targets a:1, b:1 and so on of "a b".
func addrs(list string) []upstream.Target {
	var targets []upstream.Target
	for name := range strings.FieldsSeq(list) {
		targets = append(targets, upstream.Target{Addr: name + ":1"})
	}
	return targets
}

// picks makes one request after the other over a group.
type picks struct {
	t      testing.TB
	g      *upstream.Group
	broken map[string]bool // who fails
	status map[string]int
}

func over(t testing.TB, o upstream.Options, targets ...upstream.Target) *picks {
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

// lease picks and fails the test if nobody can be asked.
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

// ask makes requests until n targets were asked, or a few more: each request goes
// to the next target where one fails. It returns who was asked; "-" stands for
// nobody.
func (p *picks) ask(n int, mutate ...func(*http.Request)) string {
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

// want checks who requests go to.
func (p *picks) want(want string, mutate ...func(*http.Request)) {
	p.t.Helper()
	if got := p.ask(len(strings.Fields(want)), mutate...); got != want {
		p.t.Errorf("asked %q, want %q", got, want)
	}
}

// refused checks the error of a pick.
func refused(t testing.TB, err error, kind fault.Kind, cause string) {
	t.Helper()
	e := fault.As(err)
	if e == nil || e.Kind != kind || e.Target != "app" || e.Err.Error() != cause || e.Status() != 503 {
		t.Errorf("error %#v, want %v: %s", e, kind, cause)
	}
}
