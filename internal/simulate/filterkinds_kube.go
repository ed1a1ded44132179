package simulate

import (
	"bytes"
	"errors"
	"net/http"
	"slices"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/watchcodec"
)

// kubeKind rewrites lists, watches and objects of Kubernetes.
var kubeKind = filterKind{
	name: "watchcodec",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		return watchcodec.NewFilter(watchcodec.FilterOptions{AllowWrites: p.allowsWrites(), Tables: p.tables(), Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
			if p.passes() {
				return nil
			}
			return p.rewrite
		}})
	},
	request: func(p FilterPlan, q *hop) {
		switch accept := p.accepts(q.wants); {
		case q.e.Kube == KubeNothing || p.passes():
		case q.e.Method == http.MethodPut && !p.allowsWrites():
			q.refuse(http.StatusForbidden)
		case accept == "":
			q.refuse(http.StatusNotAcceptable)
		default:
			q.wants, q.accept = accept, ""
			q.holds, q.delays = q.e.Kube == KubeObject, q.e.Kube == KubeList
			if q.e.Kube == KubeObject && q.method == http.MethodHead {
				q.method = http.MethodGet
			}
		}
	},
	response: func(p FilterPlan, q *hop, m *message) {
		switch {
		case q.e.Kube == KubeNothing || p.passes():
		case m.status >= 200 && m.status <= 299 && m.status != http.StatusNoContent:
			p.kube(q, m)
		case q.e.Kube == KubeObject:
			m.hold()
		}
	},
}

// What options mean: 0 hides and edits.
func (p FilterPlan) hides() bool        { return p.A != 2 }
func (p FilterPlan) rewrites() bool     { return p.A != 1 }
func (p FilterPlan) passes() bool       { return p.A == 3 }
func (p FilterPlan) failsAt() string    { return []string{"", "", "", "", "n2-", ""}[p.A] }
func (p FilterPlan) allowsWrites() bool { return p.A == 5 }

var errRewriter = errors.New("refused, as planned")

// rewrite is a watchcodec.Rewriter.
func (p FilterPlan) rewrite(o *watchcodec.Object) (visible bool, err error) {
	shown, whole := o.Label(shownLabel)
	switch {
	case p.failsAt() != "" && bytes.HasPrefix(o.Name(), []byte(p.failsAt())):
		return false, errRewriter
	case p.hides() && string(shown) != "true":
		return false, nil
	case !p.rewrites() || !whole:
		return true, nil
	}
	switch p.B % 3 {
	case 1:
		return true, o.Edit(watchcodec.Delete(watchcodec.ManagedFields()...))
	case 2:
		return true, o.Edit(watchcodec.Set("edited", watchcodec.Annotation("note")...))
	}
	return true, o.Edit(watchcodec.Set("nowhere", watchcodec.Field{Name: "spec", Number: 2}, watchcodec.Field{Name: "nodeName", Number: 10}))
}

// rewritten returns an object as rewrite leaves it.
func (p FilterPlan) rewritten(e kubeEvent) (_ kubeEvent, visible, failed bool) {
	switch {
	case p.failsAt() != "" && e.name == 2:
		return e, false, true
	case p.hides() && (!e.shown || e.bare):
		return e, false, false
	case !p.rewrites() || e.bare:
		return e, true, false
	}
	switch p.B % 3 {
	case 1:
		e.managed = false
	case 2:
		e.note = "edited"
	default:
		e.node = "nowhere"
	}
	return e, true, false
}

// kube applies the filter to a response.
func (p FilterPlan) kube(q *hop, m *message) {
	m.acts("watchcodec")
	m.length, m.flipped = -1, nil
	if m.coding != "" && m.coding != "gzip" {
		m.status = http.StatusBadGateway
		m.replace(kubeJSON)
		m.body, m.kube = nil, nil
		return
	}
	m.coding, m.changed = "", true
	if m.bodyless(q) && q.e.Kube != KubeObject {
		return
	}
	if m.kube != nil && m.kube.table {
		m.acts("watchcodec reads a Table")
	}
	switch q.e.Kube {
	case KubeList:
		p.kubeList(m)
	case KubeWatch:
		p.kubeWatch(m)
	case KubeObject:
		p.kubeObject(m)
	}
}

// takeAway records that the client gets a response of the gateway's own in place of the target's.
func (m *message) takeAway(status int) {
	m.acts("a response is taken away")
	m.never, m.instead, m.status, m.media, m.replaced = true, status, status, kubeJSON, true
	m.body, m.kube = nil, nil
}

// hold sets the length of a response that is held until it is whole.
func (m *message) hold() {
	switch {
	case m.status == http.StatusNoContent || m.status == http.StatusNotModified || m.body == nil:
	case m.coding != "":
		m.length = m.wire
	default:
		m.length = int64(len(m.body()))
	}
}

// kubeList applies the filter to a list. One that can't be read is broken off if a part of it was sent.
func (p FilterPlan) kubeList(m *message) {
	if m.kube == nil || m.kube.cut && m.kube.proto {
		m.takeAway(http.StatusBadGateway)
		return
	}
	list := *m.kube
	list.events = nil
	for _, e := range m.kube.events {
		e, visible, failed := p.rewritten(e)
		if failed && list.proto {
			m.takeAway(http.StatusBadGateway)
			return
		}
		if failed {
			list.cut = true
			break
		}
		if visible {
			list.events = append(list.events, e)
		}
	}
	m.kube = &list
	content := list.bytes()
	if list.cut {
		m.acts("watchcodec breaks a list off")
		m.loose, m.cut, m.instead = true, true, http.StatusBadGateway
		content = bytes.TrimSuffix(content, []byte(listEnd))
	}
	m.body = func() []byte { return content }
}

// kubeObject applies the filter to an object, whose response is held until it is whole.
func (p FilterPlan) kubeObject(m *message) {
	switch {
	case m.cut || m.aborted || m.never:
		m.never = true
		return
	case m.kube == nil || m.kube.cut:
		m.takeAway(http.StatusBadGateway)
		return
	}
	object := *m.kube
	e, visible, failed := p.rewritten(object.events[0])
	switch {
	case failed:
		m.takeAway(http.StatusBadGateway)
		return
	case !visible:
		m.takeAway(http.StatusNotFound)
		return
	}
	object.events = []kubeEvent{e}
	content := object.bytes()
	m.kube, m.length = &object, int64(len(content))
	m.body = func() []byte { return content }
}

// kubeWatch applies the filter to a watch, which then has only the objects that the client may see
// (watchcodec.FilterOptions). One that can't be read ends with an ERROR event.
func (p FilterPlan) kubeWatch(m *message) {
	watch := kubeContent{verb: KubeWatch, failed: true}
	if came := m.kube; came != nil {
		watch = *came
		watch.events, watch.before, watch.cut, watch.failed = nil, nil, false, came.cut || came.failed
		p.watched(came, &watch, m)
	} else {
		watch.proto = m.media != kubeJSON
	}
	if watch.failed {
		m.acts("watchcodec ends a watch")
	}
	m.kube, m.edited, m.told = &watch, true, watch.failed
	m.matches = watch.match
	if expired := watch.expired; expired != nil {
		m.settled, m.told = &watch, true
		m.matches = func(plain []byte, whole bool) error {
			err := watch.match(plain, whole)
			if err != nil && expired.match(plain, whole) == nil {
				return nil
			}
			return err
		}
	}
	m.body = func() []byte { return watch.bytes() }
}

// watched returns the events that the client sees of those that the target sends. A resumed watch may need to know what its
// client has seen before: if the list that shows it can't be had, the watch ends with 410 instead (watchcodec.NewFilter).
func (p FilterPlan) watched(came, watch *kubeContent, m *message) {
	has, known := map[int]bool{}, map[int]bool{}
	listable := true
	var columns tableColumns
	for _, e := range came.before {
		e, visible, failed := p.rewritten(e)
		has[e.name] = visible
		listable = listable && !failed
	}
	for _, e := range came.events {
		columns.take(&e)
		if e.kind == "BOOKMARK" || e.kind == "ERROR" {
			if e.kind == "BOOKMARK" {
				columns.give(&e)
			}
			watch.events = append(watch.events, e)
			continue
		}
		e, visible, failed := p.rewritten(e)
		if failed {
			watch.failed = true
			break
		}
		unknown := came.resumed && watch.expired == nil && !known[e.name]
		if unknown && !visible && e.kind == "MODIFIED" {
			expired := *watch
			expired.events, expired.failed, expired.gone = slices.Clone(watch.events), true, true
			if watch.expired = &expired; !listable {
				*watch = expired
				return
			}
		}
		had := has[e.name]
		has[e.name], known[e.name] = visible && e.kind != "DELETED", true
		switch {
		case visible && !had && e.kind == "DELETED", !visible && !had:
			continue
		case visible && !had:
			e.either = unknown && e.kind == "MODIFIED"
			e.kind = "ADDED"
		case !visible:
			m.acts("watchcodec hides an object")
			e = kubeEvent{kind: "DELETED", name: e.name, version: e.version, bare: true}
		}
		columns.give(&e)
		watch.events = append(watch.events, e)
	}
}
