package view

import (
	"errors"
	"log/slog"

	"github.com/klauspost/compress/s2"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// entry is an object of the server and its rendered state.
type entry struct {
	key     string
	raw     []byte // as the server has it, with its kind; the same slice as out if rendering changes nothing
	packed  bool   // raw is compressed: it is needed only when something changes
	out     []byte // as clients see it; nil: it is hidden
	version uint64 // of out
	uid     string // of out
	group   *group
	seen    uint64 // the last round in which it was set
	refused bool   // Renderer.Group has panicked for it: it is hidden
}

// group is a set of objects that are rendered together.
type group struct {
	name    string
	entries []*entry
	depends []*dependency
}

// dependency is state that groups depend on.
type dependency struct {
	name   string
	groups map[*group]struct{}
}

// store holds the objects and renders them. It is not safe for concurrent use.
type store struct {
	renderer   contained
	log        *slog.Logger
	emit       func(version uint64, frame []byte) // nil: there are no clients yet
	clock      clock
	collection source.Collection
	entries    map[string]*entry
	groups     map[string]*group
	dependents map[string]*dependency
	round      uint64
	bytes, max int
	objects    []watchcodec.Object // for rendering
	items      []Item
	unpacked   [][]byte // buffers for the objects being rendered
	scratch    []byte
}

var errTooMuch = errors.New("view: the objects exceed the bound of memory")

// keyOf returns a key that is unique among objects: a namespace has no slash.
func keyOf(o *watchcodec.Object) string {
	return string(o.Namespace()) + "/" + string(o.Name())
}

// set stores an object of the server and returns the groups to render: its own, and the one that it
// has left.
func (s *store) set(o *watchcodec.Object) (changed [2]*group, err error) {
	key := keyOf(o)
	e := s.entries[key]
	if e == nil {
		e = &entry{key: key}
		s.entries[key] = e
	}
	s.scratch = o.AppendRaw(s.scratch[:0])
	raw := exact(s.scratch)
	s.account(e, raw, e.out)
	e.raw, e.packed, e.seen = raw, false, s.round
	name, ok := s.renderer.group(o)
	if e.refused = !ok; name == "" {
		name = "\x00" + key // not the name of a group
	}
	if e.group != nil && e.group.name != name {
		changed[1] = s.leave(e)
	}
	if e.group == nil {
		s.join(e, name)
	}
	changed[0] = e.group
	if s.bytes > s.max {
		return changed, errTooMuch
	}
	return changed, nil
}

// exact returns a copy of p without spare capacity.
func exact(p []byte) []byte {
	out := make([]byte, len(p))
	copy(out, p)
	return out
}

// unpacked returns e as the server has it. If e is packed, it is decoded into buf, which is
// returned as it has grown.
func (e *entry) unpacked(buf []byte) (raw, grown []byte) {
	if !e.packed {
		return e.raw, buf
	}
	raw, err := s2.Decode(buf[:cap(buf)], e.raw)
	if err != nil {
		panic(err) // it was packed here
	}
	return raw, raw
}

// account updates the memory count for an e that gets the given raw and out.
func (s *store) account(e *entry, raw, out []byte) {
	s.bytes += size(raw, out) - size(e.raw, e.out)
}

func size(raw, out []byte) int {
	if len(raw) > 0 && len(out) > 0 && &raw[0] == &out[0] {
		return len(raw)
	}
	return len(raw) + len(out)
}

func (s *store) join(e *entry, name string) {
	g := s.groups[name]
	if g == nil {
		g = &group{name: name}
		s.groups[name] = g
	}
	g.entries = append(g.entries, e)
	e.group = g
}

// leave removes e from its group, and returns the group if other entries are left in it.
func (s *store) leave(e *entry) *group {
	g := e.group
	e.group = nil
	for i, other := range g.entries {
		if other == e {
			g.entries = append(g.entries[:i], g.entries[i+1:]...)
			break
		}
	}
	if len(g.entries) > 0 {
		return g
	}
	s.clearDependencies(g)
	delete(s.groups, g.name)
	return nil
}

// remove removes an object, sends an event to the clients that have seen it, and returns the rest
// of its group, nil if there is none.
func (s *store) remove(key string) *group {
	e := s.entries[key]
	if e == nil {
		return nil
	}
	delete(s.entries, key)
	g := s.leave(e)
	s.hide(e)
	s.account(e, nil, nil)
	return g
}

// unseen returns the keys of the objects that were not set in this round.
func (s *store) unseen() (keys []string) {
	for key, e := range s.entries {
		if e.seen != s.round {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *store) clearDependencies(g *group) {
	for _, d := range g.depends {
		if delete(d.groups, g); len(d.groups) == 0 {
			delete(s.dependents, d.name)
		}
	}
	g.depends = g.depends[:0]
}

func (s *store) addDependency(g *group, name string) {
	d := s.dependents[name]
	if d == nil {
		d = &dependency{name, map[*group]struct{}{}}
		s.dependents[name] = d
	}
	if _, known := d.groups[g]; !known {
		d.groups[g] = struct{}{}
		g.depends = append(g.depends, d)
	}
}
