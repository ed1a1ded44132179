package view

import (
	"bytes"

	"github.com/klauspost/compress/s2"

	"github.com/culvert-go/culvert/watchcodec"
)

// render renders a group and tells of what has changed.
func (s *store) render(g *group) {
	s.forget(g)
	if first := g.entries[0]; first.refused { // it has the group for itself
		s.gone(first)
		return
	}
	s.items = s.items[:0]
	for len(s.objects) < len(g.entries) {
		s.objects = append(s.objects, watchcodec.Object{})
		s.unpacked = append(s.unpacked, nil)
	}
	for i, e := range g.entries {
		o := &s.objects[i]
		var raw []byte
		raw, s.unpacked[i] = e.unpacked(s.unpacked[i])
		err := o.Parse(s.collection.Format, s.collection.APIVersion, s.collection.Kind, raw)
		s.items = append(s.items, Item{Object: o, Hidden: err != nil}) // it was parsed when it came
	}
	if err := s.renderer.render(s.items, func(name string) { s.depend(g, name) }); err != nil {
		s.log.Error("view: objects are hidden that can't be rendered", "kind", s.collection.Kind, "first", g.entries[0].key, "error", err)
		for i := range s.items {
			s.items[i].Hidden = true
		}
	}
	for i, e := range g.entries {
		if s.items[i].Hidden {
			s.gone(e)
		} else {
			s.show(e, s.items[i].Object)
		}
	}
}

// show makes o what clients see of e.
func (s *store) show(e *entry, o *watchcodec.Object) {
	edited := o.Changed()
	uid := e.uid // a copy, as what o returns ends with the next edit
	if is := o.UID(); string(is) != uid {
		uid = string(is)
		s.gone(e) // another object of the same name
	}
	kind := watchcodec.Added
	if e.out != nil {
		kind = watchcodec.Modified
		s.stamp(o, e.version)
		if bytes.Equal(o.Value().Raw(), e.out) {
			s.shown(e, e.out, edited)
			return
		}
	}
	e.version, e.uid = s.clock.next(), uid
	s.stamp(o, e.version)
	s.shown(e, exact(o.Value().Raw()), edited)
	s.tell(kind, o, e.version)
}

// shown notes what clients see of e. Where rendering has changed nothing the server's own
// bytes need not be kept beside.
func (s *store) shown(e *entry, out []byte, edited bool) {
	raw := e.raw
	switch {
	case !edited:
		raw, e.packed = out, false
	case !e.packed:
		s.scratch = s2.Encode(s.scratch[:cap(s.scratch)], raw)
		raw, e.packed = exact(s.scratch), true
	}
	s.account(e, raw, out)
	e.raw, e.out = raw, out
}

// gone tells those who have seen e that they don't any more, with what they have seen.
func (s *store) gone(e *entry) {
	if e.out == nil {
		return
	}
	var o watchcodec.Object
	version := s.clock.next()
	if err := o.Parse(s.collection.Format, s.collection.APIVersion, s.collection.Kind, e.out); err == nil { // as above
		s.stamp(&o, version)
		s.tell(watchcodec.Deleted, &o, version)
	}
	s.account(e, e.raw, nil)
	e.out = nil
}

func (s *store) stamp(o *watchcodec.Object, version uint64) {
	if err := o.Edit(watchcodec.Set(format(version), watchcodec.ResourceVersion()...)); err != nil {
		s.log.Error("view: an object without place for a resourceVersion", "error", err)
	}
}

func (s *store) tell(t watchcodec.EventType, o *watchcodec.Object, version uint64) {
	if s.emit == nil {
		return
	}
	frame, err := watchcodec.AppendEvent(make([]byte, 0, len(o.Value().Raw())+256), t, o)
	if err != nil {
		s.log.Error("view: an event that can't be encoded", "error", err)
		return
	}
	s.emit(version, frame)
}
