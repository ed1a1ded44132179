package watchcodec

// objectMeta holds the encoded fields of metadata; a missing field is empty.
type objectMeta struct {
	all                           Value
	whole                         span // all in the object; in protobuf with the tag and the length
	name, namespace, uid, version Value
	labels, annotations           Value // in protobuf from the first entry to the last, with any other fields between them
	managed                       span  // the part of all to remove for managedFields, if that is known
}

func (m *objectMeta) parseJSON(outer *cursor) error {
	if m.all.raw != nil {
		return malformed(outer.at) // twice
	}
	p, start := outer.p, outer.at
	c, err := enter(p, start, '{', outer.w)
	if err != nil {
		return err
	}
	var seen keys
	before := 0 // the end of the preceding member
	for {
		more, err := c.more()
		if err != nil {
			return err
		}
		if !more {
			m.all = Value{JSON, p[start:c.at]}
			outer.at = c.at
			return nil
		}
		key, err := c.key()
		if err != nil {
			return err
		}
		if err := seen.add(key.of(p)); err != nil {
			return err
		}
		value, err := c.value()
		if err != nil {
			return err
		}
		k, err := known(key.of(p), "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "managedFields")
		if err != nil {
			return err
		}
		if k == managedField.Name {
			if m.managed.end > 0 {
				return malformed(value.start)
			}
			m.managed = span{before, c.at - start} // includes the comma before it
		}
		before = c.at - start
		if field := m.field(k); field != nil {
			if field.raw != nil || !fits(k, value.of(p)) {
				return malformed(value.start)
			}
			if string(value.of(p)) != "null" {
				*field = Value{JSON, value.of(p)}
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
		f, err := protoField{}, error(nil)
		if end := shortField(p, i); end > 0 {
			f = protoField{int(p[i] >> 3), wireBytes, span{i, end}, span{i + 2, end}}
		} else if f, err = nextField(p, i); err != nil {
			return err
		}
		i = f.whole.end
		var field *Value
		switch f.number {
		case nameField.Number:
			field = &m.name
		case namespaceField.Number:
			field = &m.namespace
		case uidField.Number:
			field = &m.uid
		case versionField.Number:
			field = &m.version
		case labelsField.Number, annotationField.Number:
			if f.wire != wireBytes || !isEntry(f.value.of(p)) {
				return errProtobuf
			}
			if f.number == labelsField.Number {
				labels.add(f.whole)
			} else {
				annotations.add(f.whole)
			}
			continue
		case managedField.Number:
			managed.add(f.whole)
			continue
		default:
			continue
		}
		if f.wire != wireBytes || field.raw != nil {
			return errProtobuf
		}
		*field = Value{Protobuf, f.value.of(p)}
	}
	m.labels, m.annotations = Value{Protobuf, labels.of(p)}, Value{Protobuf, annotations.of(p)}
	if !managed.torn {
		m.managed = managed.span
	}
	return nil
}

// region spans the fields with one number, from the first to the last.
type region struct {
	span
	torn bool // there are other fields between them
}

func (r *region) add(field span) {
	if r.end == 0 {
		r.start = field.start
	}
	r.torn = r.torn || r.end != 0 && r.end != field.start
	r.end = field.end
}

// isEntry reports whether p is a well-formed entry of a map: it is not known what generated
// decoders, which may read beyond its end, make of another one.
func isEntry(p []byte) bool {
	for i := 0; i < len(p); {
		if end := shortField(p, i); end > 0 && p[i]>>3 <= 2 {
			i = end
			continue
		}
		f, err := nextField(p, i)
		if err != nil || f.wire != wireBytes || f.number > 2 {
			return false
		}
		i = f.whole.end
	}
	return true
}
