package watchcodec

// Rewriter looks at an object on its way to a client, may edit it, and says whether the
// client sees it. It must depend on the object alone: whether an object is seen must not
// change but with the object. Of a subresource it sees what that answers, a Scale for
// instance. An error ends the answer with a Status, and nothing of the
// object is sent.
//
// It is called for one object after the other of an answer, and for several answers at
// the same time. It must not keep the object.
type Rewriter func(*Object) (visible bool, err error)

// Visible applies a Rewriter to the events of one watch, so that they tell of the objects
// that are seen as if there were no others: an object that comes into sight is ADDED, one
// that goes out of it DELETED, with nothing but its name, namespace, uid and the event's
// resourceVersion. BOOKMARK and ERROR pass.
type Visible struct {
	rewrite Rewriter
	hidden  map[string]struct{} // the objects of which this watch has told nothing, or that they are gone
	key     []byte
	table   tableEvents
}

// NewVisible is for one watch; it remembers the objects that are not seen.
func NewVisible(rewrite Rewriter) *Visible {
	return &Visible{rewrite: rewrite, hidden: map[string]struct{}{}}
}

// Apply makes of e what the client is to be told. tell is false if that is nothing. An
// event of a Table is about the object of its row; the cells are the server's, whatever
// the Rewriter makes of the object.
func (v *Visible) Apply(e *Event) (tell bool, err error) {
	if string(e.Object.Kind()) != tableKind {
		return v.apply(e, &e.Object, e.Object.bare)
	}
	if e.Type == Bookmark { // it has a row that stands for nothing
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
		return true, nil
	}
	v.key = append(append(append(v.key[:0], object.Namespace()...), '/'), object.Name()...)
	visible, err := v.rewrite(object)
	if err != nil {
		return false, err
	}
	_, hidden := v.hidden[string(v.key)]
	switch {
	case e.Type == Deleted:
		delete(v.hidden, string(v.key))
		return visible, nil
	case visible && hidden:
		delete(v.hidden, string(v.key))
		e.Type = Added
		return true, nil
	case visible:
		return true, nil
	case !hidden:
		v.hidden[string(v.key)] = struct{}{}
	}
	if e.Type == Added || hidden {
		return false, nil
	}
	e.Type = Deleted
	hide()
	return true, nil
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
