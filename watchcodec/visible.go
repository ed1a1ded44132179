package watchcodec

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// Rewriter is called with an object on its way to a client, may edit it, and reports whether the
// client sees it. Its result must depend on the object alone: visibility must change only with the
// object. For a subresource it is called with the object in the response, a Scale for instance. An
// error ends the response with a Status, and nothing of the object is sent.
//
// A Rewriter is called with one object of a response after the other, and for several responses at
// the same time. It must not keep the object.
type Rewriter func(*Object) (visible bool, err error)

// visibility applies a Rewriter to the events of one watch, so that the client sees the visible
// objects as if there were no others: an object that becomes visible is ADDED, and one that becomes
// hidden is DELETED, with only its name, namespace, uid and the event's resourceVersion. BOOKMARK
// and ERROR events pass.
//
// A client learns the name of an object only if it has seen the object. A watch that begins with
// all objects shows what its client has seen. One that continues from a resourceVersion does not:
// see newResumedVisibility.
//
// A visibility must not be used by several goroutines at the same time.
type visibility struct {
	rewrite Rewriter
	// seen reports for an object, by its hash, whether the client has it. There may be very many
	// objects. The hash is seeded, so that clients can't choose collisions.
	seen map[uint64]bool
	// complete reports whether the client is known not to have the objects that are missing in
	// seen. Otherwise that is not known.
	complete bool
	version  []byte // up to which the client has received everything
	next     []byte
	list     func(version string, take func(*Object) error) error
	key      []byte
	table    tableEvents
}

// errUnknownState is the error of an event of a resumed watch after which it is not known what the
// client has seen. The client has to list again: it has to be sent an ERROR event of 410, Expired.
var errUnknownState = errors.New("watchcodec: it is not known what the client of this watch has seen")

// newVisibility returns a visibility for a watch that begins with all objects as ADDED events: one
// without a resourceVersion, or at "0", or with sendInitialEvents=true.
func newVisibility(rewrite Rewriter) *visibility {
	return &visibility{rewrite: rewrite, seen: map[uint64]bool{}, complete: true}
}

// newResumedVisibility returns a visibility for a watch that continues from a resourceVersion. When a
// hidden object is MODIFIED for which the watch has sent no event yet, the client may have it from
// before or may never have seen it. If the client keeps such an object, its state is wrong; if it
// is sent a DELETED event for it, it learns the name of a hidden object. So Apply calls list, at
// most once: list has to call take with each object of the collection as it was at the
// resourceVersion that list is called with (resourceVersionMatch=Exact). If list is nil or fails,
// Apply returns errUnknownState.
func newResumedVisibility(rewrite Rewriter, resourceVersion string, list func(resourceVersion string, take func(*Object) error) error) *visibility {
	return &visibility{rewrite: rewrite, seen: map[uint64]bool{}, version: []byte(resourceVersion), list: list}
}

// Apply changes e to the event that the client receives. send is false if the client receives none.
// An event of a Table is about the object of its row; the cells are the server's, and do not change
// with the object.
func (v *visibility) Apply(e *Event) (send bool, err error) {
	if string(e.Object.Kind()) != tableKind {
		return v.apply(e, &e.Object, e.Object.reduceToIdentity)
	}
	if e.Type == Bookmark { // it has a row without meaning
		v.advance(e.Object.ResourceVersion())
		return true, v.table.finish(&e.Object, true)
	}
	object, err := v.table.subject(&e.Object)
	if err != nil {
		return false, err
	}
	send, err = v.apply(e, object, v.table.row.hide)
	if err == nil && send {
		err = v.table.setRow(&e.Object)
	}
	if err == nil {
		err = v.table.finish(&e.Object, send)
	}
	return send, err
}

// apply is Apply for an event about an object. hide reduces the object to what identifies it.
func (v *visibility) apply(e *Event, object *Object, hide func()) (send bool, err error) {
	if e.Type == Bookmark || e.Type == Error {
		v.advance(object.ResourceVersion())
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
		if err := v.listOnce(key); err != nil {
			return false, err
		}
	}
	v.advance(v.next)
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

// hash returns the hash that identifies an object.
func (v *visibility) hash(o *Object) uint64 {
	v.key = append(append(append(v.key[:0], o.Namespace()...), '/'), o.Name()...)
	return maphash.Bytes(visibleSeed, v.key)
}

var visibleSeed = maphash.MakeSeed()

// advance notes that the client has received everything up to a version.
func (v *visibility) advance(version []byte) {
	if !v.complete && len(version) > 0 {
		v.version = append(v.version[:0], version...)
	}
}

// listOnce makes sure that it is known whether the client has an object. An object of which the
// watch has sent no event is unchanged between the client's resourceVersion and the one that the
// watch has reached.
func (v *visibility) listOnce(key uint64) error {
	if _, known := v.seen[key]; known || v.complete {
		return nil
	}
	if v.list == nil {
		return errUnknownState
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
		return fmt.Errorf("%w: %w", errUnknownState, err)
	}
	v.complete, v.list = true, nil
	return nil
}

// reduceToIdentity removes from an object all but what identifies it to a client.
func (o *Object) reduceToIdentity() {
	o.refresh()
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
			meta = scan.AppendBytesField(meta, field.Number, field.value.raw)
		default:
			if len(meta) > 1 {
				meta = append(meta, ',')
			}
			meta = append(append(meta, quoted(field.Name)...), ':')
			meta = append(meta, field.value.raw...)
		}
	}
	if o.format == Protobuf {
		o.become(scan.AppendBytesField(nil, metadata.Number, meta))
	} else {
		o.become([]byte(`{"kind":` + quoted(string(o.kind)) + `,"apiVersion":` + quoted(string(o.apiVersion)) + `,"metadata":` + string(meta) + `}}`))
	}
}
