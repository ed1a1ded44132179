package watchcodec

import "github.com/culvert-go/culvert/watchcodec/internal/scan"

// Label returns the value of a label, and reports whether the object has it.
func (o *Object) Label(key string) (value []byte, ok bool) {
	o.refresh()
	return o.entry(o.meta.labels, labelsField, key)
}

// Annotation returns the value of an annotation, and reports whether the object has it.
func (o *Object) Annotation(key string) (value []byte, ok bool) {
	o.refresh()
	return o.entry(o.meta.annotations, annotationField, key)
}

// Labels returns all labels, nil if there are none.
func (o *Object) Labels() map[string]string {
	o.refresh()
	return o.entries(o.meta.labels, labelsField)
}

// Annotations returns all annotations, nil if there are none.
func (o *Object) Annotations() map[string]string {
	o.refresh()
	return o.entries(o.meta.annotations, annotationField)
}

func (o *Object) entries(object Value, f Field) (all map[string]string) {
	add := func(key []byte, v Value) {
		if text, ok := v.Text(); ok {
			if all == nil {
				all = map[string]string{}
			}
			all[string(key)] = string(text)
		}
	}
	if o.format == Protobuf {
		for entry := range object.fields(f.Number) {
			add(entry.pair())
		}
		return all
	}
	c, err := scan.Enter(object.raw, 0, '{', nil)
	for more := err == nil; more; {
		if more, err = c.More(); err != nil || !more {
			break
		}
		key, err := c.Key()
		if err != nil {
			break
		}
		value, err := c.Value()
		if err != nil {
			break
		}
		if text, err := scan.Unquote(key.Of(c.Text)); err == nil {
			add(text, Value{JSON, value.Of(c.Text)})
		}
	}
	return all
}

func (o *Object) entry(object Value, f Field, key string) ([]byte, bool) {
	var v Value
	var ok bool
	if o.format == Protobuf {
		v, ok = object.entry(f.Number, key)
	} else {
		v, ok = object.field(Key(key))
	}
	if !ok {
		return nil, false
	}
	return v.Text()
}
