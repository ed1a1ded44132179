package watchcodec

import (
	"errors"
	"fmt"
	"hash/maphash"
)

// Rewriter looks at an object on its way to a client, may edit it, and reports whether the
// client sees it. It must depend on the object alone: whether an object is seen must not
// change but with the object. Of a subresource it sees what that answers, a Scale for
// instance. An error ends the answer with a Status, and nothing of the
// object is sent.
//
// It is called for one object after the other of an answer, and for several answers at
// the same time. It must not keep the object.
type Rewriter func(*Object) (visible bool, err error)

// Visible applies a Rewriter to the events of one watch, so that the client learns of the
// objects that it sees as if there were no others: an object that comes into sight is ADDED,
// one that goes out of it DELETED, with nothing but its name, namespace, uid and the event's
// resourceVersion. BOOKMARK and ERROR pass.
//
// A client learns the name of an object only if it has seen the object. A watch that
// begins with all objects tells what its client has seen. One that continues from a
// resourceVersion does not: see NewResumedVisible.
//
// A Visible must not be used by several goroutines at once.
type Visible struct {
	rewrite Rewriter
	// seen has the objects of which is known whether the client has them, by hash: there
	// may be very many. The hash is not for outsiders to choose.
	seen map[uint64]bool
	// complete reports whether an object that is not in seen is one that the client does not
	// have; otherwise that is not known.
	complete bool
	version  []byte // up to which the client has everything
	next     []byte
	list     func(version string, take func(*Object) error) error
	key      []byte
	table    tableEvents
}

// ErrUnknownState is the error of an event of a resumed watch after which it can't be told what
// the client has seen. The client has to list again: it is to get an ERROR event of 410, Expired.
var ErrUnknownState = errors.New("watchcodec: it is not known what the client of this watch has seen")

// NewVisible is for a watch that begins with all objects as ADDED events: one without a
// resourceVersion, or at "0", or with sendInitialEvents=true.
func NewVisible(rewrite Rewriter) *Visible {
	return &Visible{rewrite: rewrite, seen: map[uint64]bool{}, complete: true}
}

// NewResumedVisible is for a watch that continues from a resourceVersion. When an object is
// MODIFIED that is not seen, and that the watch has not told of yet, the client may have it from
// before or may never have seen it. If it keeps such an object, its state is wrong; if it is sent a
// DELETED event for it, it learns the name of a hidden object. So Apply calls list, once at
// most: it has to call take with each object that the watch is about, as they were at the
// version (resourceVersionMatch=Exact). If list is nil or fails, the error of Apply is
// ErrUnknownState.
func NewResumedVisible(rewrite Rewriter, resourceVersion string, list func(resourceVersion string, take func(*Object) error) error) *Visible {
	return &Visible{rewrite: rewrite, seen: map[uint64]bool{}, version: []byte(resourceVersion), list: list}
}

// Apply makes of e what the client is to receive. tell is false if that is nothing. An
// event of a Table is about the object of its row; the cells are the server's, whatever
// the Rewriter makes of the object.
func (v *Visible) Apply(e *Event) (tell bool, err error) {
	if string(e.Object.Kind()) != tableKind {
		return v.apply(e, &e.Object, e.Object.bare)
	}
	if e.Type == Bookmark { // it has a row that stands for nothing
		v.reached(e.Object.ResourceVersion())
		return true, v.table.finish(&e.Object, true)
	}
	object, err := v.table.subject(&e.Object)
	if err != nil {
		return false, err
	}
	tell, err = v.apply(e, object, v.table.row.hide)
	if err == nil && tell {
		err = v.table.rewritten(&e.Object)
	}
	if err == nil {
		err = v.table.finish(&e.Object, tell)
	}
	return tell, err
}

// apply is Apply for an event about an object. hide leaves of it what tells which one it
// is.
func (v *Visible) apply(e *Event, object *Object, hide func()) (tell bool, err error) {
	if e.Type == Bookmark || e.Type == Error {
		v.reached(object.ResourceVersion())
		return true, nil
	}
	key := v.hash(object)
	if !v.complete {
		v.next = append(v.next[:0], object.ResourceVersion()...) // the Rewriter may edit it
	}
	visible, err := v.rewrite(object)
	if err != nil {
		return false, err
	}
	if !visible && e.Type == Modified {
		if err := v.settle(key); err != nil {
			return false, err
		}
	}
	v.reached(v.next)
	has, known := v.seen[key]
	if e.Type == Deleted {
		delete(v.seen, key)
	} else {
		v.seen[key] = visible
	}
	switch {
	case visible && known && !has && e.Type == Deleted:
		return false, nil
	case visible && known && !has:
		e.Type = Added
		return true, nil
	case visible:
		return true, nil
	case !has:
		return false, nil
	}
	e.Type = Deleted
	hide()
	return true, nil
}

// hash identifies an object.
func (v *Visible) hash(o *Object) uint64 {
	v.key = append(append(append(v.key[:0], o.Namespace()...), '/'), o.Name()...)
	return maphash.Bytes(visibleSeed, v.key)
}

var visibleSeed = maphash.MakeSeed()

// reached notes that the client has everything up to a version.
func (v *Visible) reached(version []byte) {
	if !v.complete && len(version) > 0 {
		v.version = append(v.version[:0], version...)
	}
}

// settle finds out whether the client has an object. What the watch has not told of is as it was
// at any version between the client's own and the one that the watch has reached.
func (v *Visible) settle(key uint64) error {
	if _, known := v.seen[key]; known || v.complete {
		return nil
	}
	if v.list == nil {
		return ErrUnknownState
	}
	err := v.list(string(v.version), func(o *Object) error {
		key := v.hash(o)
		visible, err := v.rewrite(o)
		if _, known := v.seen[key]; !known {
			v.seen[key] = visible
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnknownState, err)
	}
	v.complete, v.list = true, nil
	return nil
}

// bare leaves of an object what tells a client which one it is.
func (o *Object) bare() {
	o.fresh()
	var meta []byte
	if o.format == JSON {
		meta = append(meta, '{')
	}
	for _, field := range []struct {
		Field
		value Value
	}{{nameField, o.meta.name}, {namespaceField, o.meta.namespace}, {uidField, o.meta.uid}, {versionField, o.meta.version}} {
		switch {
		case len(field.value.raw) == 0:
		case o.format == Protobuf:
			meta = appendBytesField(meta, field.Number, field.value.raw)
		default:
			if len(meta) > 1 {
				meta = append(meta, ',')
			}
			meta = append(append(meta, quoted(field.Name)...), ':')
			meta = append(meta, field.value.raw...)
		}
	}
	if o.format == Protobuf {
		o.become(appendBytesField(nil, metadata.Number, meta))
	} else {
		o.become([]byte(`{"kind":` + quoted(string(o.kind)) + `,"apiVersion":` + quoted(string(o.apiVersion)) + `,"metadata":` + string(meta) + `}}`))
	}
}
