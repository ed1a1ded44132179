package view

import (
	"bytes"

	"github.com/klauspost/compress/s2"

	"github.com/culvert-go/culvert/watchcodec"
)

// render renders a group and sends events for the changes.
func (s *store) render(g *group) {
	s.clearDependencies(g)
	if first := g.entries[0]; first.refused { // it is alone in the group
		s.hide(first)
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
		s.items = append(s.items, Item{Object: o, Hidden: err != nil}) // it was parsed before, when it was received
	}
	if err := s.renderer.render(s.items, func(name string) { s.addDependency(g, name) }); err != nil {
		s.log.Error("view: objects can't be rendered and are hidden", "kind", s.collection.Kind, "first", g.entries[0].key, "error", err)
		for i := range s.items {
			s.items[i].Hidden = true
		}
	}
	for i, e := range g.entries {
		if s.items[i].Hidden {
			s.hide(e)
		} else {
			s.show(e, s.items[i].Object)
		}
	}
}

// show makes o the state of e that clients see.
func (s *store) show(e *entry, o *watchcodec.Object) {
	edited := o.Changed()
	uid := e.uid // a copy, as what o returns is valid until the next edit only
	if is := o.UID(); string(is) != uid {
		uid = string(is)
		s.hide(e) // another object of the same name
	}
	kind := watchcodec.Added
	if e.out != nil {
		kind = watchcodec.Modified
		s.stamp(o, e.version)
		if bytes.Equal(o.Value().Raw(), e.out) {
			s.setOut(e, e.out, edited)
			return
		}
	}
	e.version, e.uid = s.clock.next(), uid
	s.stamp(o, e.version)
	s.setOut(e, exact(o.Value().Raw()), edited)
	s.send(kind, o, e.version)
}

// setOut stores what clients see of e. If rendering has not changed the object, the server's bytes
// are not stored separately.
func (s *store) setOut(e *entry, out []byte, edited bool) {
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

// hide sends a DELETED event for e with what clients have seen of it, if they have.
func (s *store) hide(e *entry) {
	if e.out == nil {
		return
	}
	var o watchcodec.Object
	version := s.clock.next()
	if err := o.Parse(s.collection.Format, s.collection.APIVersion, s.collection.Kind, e.out); err == nil { // it was parsed before, as in render
		s.stamp(&o, version)
		s.send(watchcodec.Deleted, &o, version)
	}
	s.account(e, e.raw, nil)
	e.out = nil
}

func (s *store) stamp(o *watchcodec.Object, version uint64) {
	if err := o.Edit(watchcodec.Set(format(version), watchcodec.ResourceVersion()...)); err != nil {
		s.log.Error("view: can't set the resourceVersion of an object", "error", err)
	}
}

func (s *store) send(t watchcodec.EventType, o *watchcodec.Object, version uint64) {
	if s.emit == nil {
		return
	}
	frame, err := watchcodec.AppendEvent(make([]byte, 0, len(o.Value().Raw())+256), t, o)
	if err != nil {
		s.log.Error("view: can't encode an event", "error", err)
		return
	}
	s.emit(version, frame)
}
