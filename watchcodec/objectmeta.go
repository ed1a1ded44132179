package watchcodec

import "github.com/culvert-go/culvert/watchcodec/internal/scan"

// objectMeta holds the encoded fields of metadata; a missing field is empty.
type objectMeta struct {
	all                           Value
	whole                         scan.Span // all in the object; in protobuf with the tag and the length
	name, namespace, uid, version Value
	labels, annotations           Value     // in protobuf from the first entry to the last, with any other fields between them
	managed                       scan.Span // the part of all to remove for managedFields, if that is known
}

func (m *objectMeta) parseJSON(outer *scan.Cursor) error {
	if m.all.raw != nil {
		return scan.Malformed(outer.At) // twice
	}
	p, start := outer.Text, outer.At
	c, err := scan.Enter(p, start, '{', outer.Window)
	if err != nil {
		return err
	}
	var seen scan.Keys
	before := 0 // the end of the preceding member
	for {
		more, err := c.More()
		if err != nil {
			return err
		}
		if !more {
			m.all = Value{JSON, p[start:c.At]}
			outer.At = c.At
			return nil
		}
		key, err := c.Key()
		if err != nil {
			return err
		}
		if err := seen.Add(key.Of(p)); err != nil {
			return err
		}
		value, err := c.Value()
		if err != nil {
			return err
		}
		k, err := scan.Known(key.Of(p), "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "managedFields")
		if err != nil {
			return err
		}
		if k == managedField.Name {
			if m.managed.End > 0 {
				return scan.Malformed(value.Start)
			}
			m.managed = scan.Span{Start: before, End: c.At - start} // includes the comma before it
		}
		before = c.At - start
		if field := m.field(k); field != nil {
			if field.raw != nil || !fits(k, value.Of(p)) {
				return scan.Malformed(value.Start)
			}
			if string(value.Of(p)) != "null" {
				*field = Value{JSON, value.Of(p)}
			}
		}
	}
}

// fits reports whether a field of metadata has its JSON type, or is null.
func fits(name string, raw []byte) bool {
	want := byte('"')
	if name == "labels" || name == "annotations" {
		want = '{'
	}
	return raw[0] == want || string(raw) == "null"
}

func (m *objectMeta) field(name string) *Value {
	switch name {
	case "name":
		return &m.name
	case "namespace":
		return &m.namespace
	case "uid":
		return &m.uid
	case "resourceVersion":
		return &m.version
	case "labels":
		return &m.labels
	case "annotations":
		return &m.annotations
	}
	return nil
}

func (m *objectMeta) parseProtobuf(p []byte) error {
	m.all = Value{Protobuf, p}
	var labels, annotations, managed region
	for i := 0; i < len(p); {
		f, err := scan.ProtobufField{}, error(nil)
		if end := scan.ShortField(p, i); end > 0 {
			f = scan.ProtobufField{Number: int(p[i] >> 3), Wire: scan.WireBytes, Whole: scan.Span{Start: i, End: end}, Value: scan.Span{Start: i + 2, End: end}}
		} else if f, err = scan.NextField(p, i); err != nil {
			return err
		}
		i = f.Whole.End
		var field *Value
		switch f.Number {
		case nameField.Number:
			field = &m.name
		case namespaceField.Number:
			field = &m.namespace
		case uidField.Number:
			field = &m.uid
		case versionField.Number:
			field = &m.version
		case labelsField.Number, annotationField.Number:
			if f.Wire != scan.WireBytes || !isEntry(f.Value.Of(p)) {
				return scan.ErrProtobuf
			}
			if f.Number == labelsField.Number {
				labels.add(f.Whole)
			} else {
				annotations.add(f.Whole)
			}
			continue
		case managedField.Number:
			managed.add(f.Whole)
			continue
		default:
			continue
		}
		if f.Wire != scan.WireBytes || field.raw != nil {
			return scan.ErrProtobuf
		}
		*field = Value{Protobuf, f.Value.Of(p)}
	}
	m.labels, m.annotations = Value{Protobuf, labels.Of(p)}, Value{Protobuf, annotations.Of(p)}
	if !managed.torn {
		m.managed = managed.Span
	}
	return nil
}

// region spans the fields with one number, from the first to the last.
type region struct {
	scan.Span
	torn bool // there are other fields between them
}

func (r *region) add(field scan.Span) {
	if r.End == 0 {
		r.Start = field.Start
	}
	r.torn = r.torn || r.End != 0 && r.End != field.Start
	r.End = field.End
}

// isEntry reports whether p is a well-formed entry of a map: it is not known what generated
// decoders, which may read beyond its end, make of another one.
func isEntry(p []byte) bool {
	for i := 0; i < len(p); {
		if end := scan.ShortField(p, i); end > 0 && p[i]>>3 <= 2 {
			i = end
			continue
		}
		f, err := scan.NextField(p, i)
		if err != nil || f.Wire != scan.WireBytes || f.Number > 2 {
			return false
		}
		i = f.Whole.End
	}
	return true
}
