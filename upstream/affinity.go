package upstream

import (
	"errors"
	"net/http"
)

// AffinityOptions configures Affinity.
type AffinityOptions struct {
	// Want returns the key of the target that a request is to be sent to, "" for none. It is called for each pick, and must be safe
	// for concurrent use. Required.
	Want func(*http.Request) string
	// Key returns the key of a target. Of several targets with the same one the first is selected. Required.
	Key func(Target) string
	// Otherwise selects a target for a request that wants none, or one that is not available; nil means RoundRobin.
	Otherwise Balance
}

// Affinity sends a request to the target that it wants, if that is available: by a cookie of the program's own, for instance.
// Draining targets get such requests too. Sticky has a cookie of its own.
func Affinity(o AffinityOptions) Balance {
	if o.Otherwise == nil {
		o.Otherwise = RoundRobin()
	}
	return affinity{o}
}

type affinity struct{ o AffinityOptions }

func (a affinity) check(targets []Target) error {
	if a.o.Want == nil || a.o.Key == nil {
		return errors.New("Affinity needs Want and Key")
	}
	return a.o.Otherwise.check(targets)
}

func (a affinity) newPicker(members []*member, before picker) picker {
	if b, ok := before.(*affinityPicker); ok {
		before = b.otherwise
	}
	p := &affinityPicker{want: a.o.Want, otherwise: a.o.Otherwise.newPicker(members, before), byKey: map[string]*member{}}
	for _, m := range members {
		if key := a.o.Key(m.Target); p.byKey[key] == nil {
			p.byKey[key] = m
		}
	}
	return p
}

type affinityPicker struct {
	want      func(*http.Request) string
	otherwise picker
	byKey     map[string]*member
}

func (p *affinityPicker) pick(q query) *member {
	if key := p.want(q.r); key != "" {
		known := q
		known.how = wanted
		if m := p.byKey[key]; m != nil && known.acquire(m) {
			return m
		}
	}
	return p.otherwise.pick(q)
}

func (p *affinityPicker) released(m *member) {
	if l, ok := p.otherwise.(releaser); ok {
		l.released(m)
	}
}

func (p *affinityPicker) targetFailed(m *member) {
	if f, ok := p.otherwise.(failureCounter); ok {
		f.targetFailed(m)
	}
}
