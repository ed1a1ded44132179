package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
)

// culvertStatusModule serves the state of the configuration: upstreams, servers, rates and tunnels. nginx has no such directive.
var culvertStatusModule = module{
	directives: []directive{
		{name: "culvert_status", compile: culvertStatus},
	},
	merge:  warnOfOpenStatus,
	active: func(l *level) bool { return culvertStatusSlot.of(l).on },
	hooks:  hooks{content: serveCulvertStatus},
}

type culvertStatusRule struct {
	on bool
	at *conf.Directive
}

var culvertStatusSlot = newLocalSlot[culvertStatusRule]()

// culvertStatus compiles "culvert_status on|off". All locations have the same page, which counts all requests.
func culvertStatus(c *compiler, l *level, d *conf.Directive) (err error) {
	*culvertStatusSlot.edit(l) = culvertStatusRule{d.Flag(), d}
	if d.Flag() && c.engine.status == nil {
		c.engine.status, err = statuspage.New(statuspage.Options{Title: "culvert-nginx", Groups: c.engine.groupsInUse, Tunnels: c.engine.tunnels})
	}
	return err
}

// warnOfOpenStatus warns of a page that any client can see.
func warnOfOpenStatus(c *compiler, l *level) error {
	rule := culvertStatusSlot.of(l)
	restricts := func(m *module) bool { return m.active(l) }
	if rule.on && !slices.ContainsFunc([]*module{&accessModule, &authBasicModule, &authRequestModule}, restricts) {
		c.warn(rule.at, "\"culvert_status\" without \"allow\" and \"deny\", \"auth_basic\" or \"auth_request\" shows addresses to every client")
	}
	return nil
}

func serveCulvertStatus(x *exchange, w http.ResponseWriter) (status int, done bool) {
	x.engine.status.ServeHTTP(w, x.HTTP)
	return 0, true
}

// groupsInUse yields the groups of targets that a proxy_pass has needed, by name and scheme.
func (e *Engine) groupsInUse(yield func(statuspage.Upstream) bool) {
	var list []*upstream.Group
	e.mu.Lock()
	for _, g := range e.groups {
		for _, u := range g.schemes {
			list = append(list, u)
		}
	}
	e.mu.Unlock()
	slices.SortFunc(list, func(a, b *upstream.Group) int {
		return strings.Compare(a.Name()+"\x00"+a.Scheme(), b.Name()+"\x00"+b.Scheme())
	})
	for _, u := range list {
		if !yield(u) {
			return
		}
	}
}

// observeStart counts a request for the status page, if there is one.
func (x *exchange) observeStart() {
	if p := x.engine.status; p != nil {
		p.RequestStarted(x.HTTP)
	}
}

// observeEnd counts its end.
func (x *exchange) observeEnd(s culvert.ResponseStats) {
	if p := x.engine.status; p != nil {
		p.RequestEnded(x.HTTP, filters.Observation{ResponseStats: s, Result: x.Upstream})
	}
}

// Retire ends what would run for ever: the event streams of culvert_status, whose clients then connect anew, and the work on certificates. It is called
// when another configuration has replaced e, or when the process ends.
func (e *Engine) Retire() {
	e.acme.retire()
	if e.status != nil {
		e.status.Close()
	}
}
