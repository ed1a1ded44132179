package watchcodec

import (
	"bytes"
	"fmt"
)

// Object is a Kubernetes object as it came: nothing of it is decoded but what is asked
// for. What its methods return shares the memory of the frame that it came in, and is
// valid until the next one is read or the object is edited.
type Object struct {
	format           Format
	raw              []byte // JSON's text, protobuf's message
	kind, apiVersion []byte // without quotes
	meta             objectMeta
	edited           bool
	stale            bool      // meta is that of before the last edit
	splices          []splice  // of the last edit
	window           *window   // of the text
	sealed           span      // where it is in the envelope that it came in
	told             bool      // JSON tells the kind itself
	scratch          [2][]byte // what edits write to, in turn
}

// objectMeta are the encoded fields of metadata, empty where there is none.
type objectMeta struct {
	all                           Value
	whole                         span // of all in the object, in protobuf with the tag and the length
	name, namespace, uid, version Value
	labels, annotations           Value // in protobuf from the first entry to the last, whatever is between
	managed                       span  // what to cut out of all to be without managedFields, if that is known
}

// Format returns how the object is encoded.
func (o *Object) Format() Format { return o.format }

// Value returns the whole object.
func (o *Object) Value() Value { return Value{o.format, o.raw} }

// Changed says whether the object was edited.
func (o *Object) Changed() bool { return o.edited }

// Kind returns the object's kind, "Pod" for instance, also where it is told by the list
// that the object came in and not by itself.
func (o *Object) Kind() []byte { return o.kind }

// APIVersion returns its group and version, "apps/v1" or "v1" for instance.
func (o *Object) APIVersion() []byte { return o.apiVersion }

// Name returns metadata.name, empty if there is none.
func (o *Object) Name() []byte { return o.text(&o.meta.name) }

// Namespace returns metadata.namespace, empty if there is none.
func (o *Object) Namespace() []byte { return o.text(&o.meta.namespace) }

// UID returns metadata.uid.
func (o *Object) UID() []byte { return o.text(&o.meta.uid) }

// ResourceVersion returns metadata.resourceVersion.
func (o *Object) ResourceVersion() []byte { return o.text(&o.meta.version) }

func (o *Object) text(v *Value) []byte {
	if o.fresh(); v.raw == nil {
		return nil
	}
	t, _ := v.Text()
	return t
}

// Label returns a label, and whether it is there.
func (o *Object) Label(key string) (value []byte, ok bool) {
	o.fresh()
	return o.entry(o.meta.labels, labelsField, key)
}

// Annotation returns an annotation, and whether it is there.
func (o *Object) Annotation(key string) (value []byte, ok bool) {
	o.fresh()
	return o.entry(o.meta.annotations, annotationField, key)
}

// Labels returns all labels, nil if there are none.
func (o *Object) Labels() map[string]string {
	o.fresh()
	return o.entries(o.meta.labels, labelsField)
}

// Annotations returns all annotations, nil if there are none.
func (o *Object) Annotations() map[string]string {
	o.fresh()
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
	c, err := enter(object.raw, 0, '{', nil)
	for more := err == nil; more; {
		if more, err = c.more(); err != nil || !more {
			break
		}
		key, err := c.key()
		if err != nil {
			break
		}
		value, err := c.value()
		if err != nil {
			break
		}
		if text, err := unquote(key.of(c.p)); err == nil {
			add(text, Value{JSON, value.of(c.p)})
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

// Edit changes the object, by one edit after the other. After an error it must not be
// used any more.
func (o *Object) Edit(edits ...Edit) error {
	for i := range edits {
		out, changed, err := edits[i].apply(o, o.scratch[0][:0])
		if err != nil {
			return fmt.Errorf("watchcodec: edit: %w", err)
		}
		o.scratch[0], o.scratch[1] = o.scratch[1], out[:0]
		if changed {
			o.raw, o.edited, o.stale = out, true, true
		}
	}
	return nil
}

// Parse makes o the object that is encoded in raw, as an item of a list is: in protobuf
// without an envelope, in JSON with or without its kind and its apiVersion, which are
// given. raw must not be changed as long as o is used.
func (o *Object) Parse(f Format, apiVersion, kind string, raw []byte) error {
	o.reset(f)
	end, err := o.parse(raw)
	if err == nil && end != len(raw) {
		err = malformed(end)
	}
	if f == Protobuf || o.kind == nil {
		o.kind, o.apiVersion = []byte(kind), []byte(apiVersion)
	}
	return err
}

// AppendRaw appends the object's encoding as Parse takes it, with its kind and apiVersion if
// that is JSON.
func (o *Object) AppendRaw(dst []byte) []byte {
	if o.format == JSON {
		return o.appendText(dst)
	}
	return append(dst, o.raw...)
}

// AppendSealed appends the object as an API server answers with it: in protobuf in an
// envelope, in JSON with a newline behind it.
func (o *Object) AppendSealed(dst []byte) []byte {
	if o.format == JSON {
		return append(o.appendText(dst), '\n')
	}
	return appendSealed(dst, o.apiVersion, o.kind, o.raw)
}

// parse looks at p, the object's encoding, from its first byte on, and returns where it
// ends. In protobuf it leaves the kind, which is told beside it.
func (o *Object) parse(p []byte) (end int, err error) {
	if o.format == JSON {
		return o.parseText(p, skipSpace(p, 0))
	}
	return len(p), o.parseProtobuf(p)
}

// reset makes o a new object, with the memory of the one before.
func (o *Object) reset(f Format) {
	*o = Object{format: f, scratch: o.scratch, splices: o.splices[:0], window: o.window}
}

// fresh looks at what edits have left.
func (o *Object) fresh() {
	if o.stale {
		o.stale = false
		kind, version := o.kind, o.apiVersion
		_, _ = o.parse(o.raw) // it was well-formed, and edits leave it so
		if o.kind == nil {
			o.kind = kind // of the list that it came in
		}
		if o.apiVersion == nil {
			o.apiVersion = version
		}
	}
}

// parseText parses the object at p[i] and returns where it ends.
func (o *Object) parseText(p []byte, i int) (end int, err error) {
	c := cursor{p: p, at: i, w: o.look()}
	err = o.parseJSON(&c)
	return c.at, err
}

// look returns a window for another text.
func (o *Object) look() *window {
	if o.window == nil {
		o.window = new(window)
	}
	o.window.n = 0
	return o.window
}

// parseJSON goes through the object at outer.at once, down to the fields of metadata.
func (o *Object) parseJSON(outer *cursor) error {
	p, start := outer.p, outer.at
	c, err := enter(p, start, '{', outer.w)
	if err != nil {
		return err
	}
	o.kind, o.apiVersion, o.meta, o.told = nil, nil, objectMeta{}, false
	var seen keys
	for {
		more, err := c.more()
		if err != nil {
			return err
		}
		if !more {
			o.raw, outer.at = p[start:c.at], c.at
			return nil
		}
		key, err := c.key()
		if err != nil {
			return err
		}
		if err := seen.add(key.of(p)); err != nil {
			return err
		}
		switch k, err := known(key.of(p), "kind", "apiVersion", "metadata"); {
		case err != nil:
			return err
		case k == "metadata" && c.at < len(p) && p[c.at] == '{':
			at := c.at - start
			if err = o.meta.parseJSON(&c); err != nil {
				return err
			}
			o.meta.whole = span{at, c.at - start}
			continue
		case k == "metadata":
			value, err := c.value()
			if err != nil || string(value.of(p)) != "null" {
				return firstOf(err, malformed(value.start))
			}
			continue
		case k == "kind":
			o.told = true
			err = once(&o.kind, &c)
			if err != nil {
				return err
			}
			continue
		case k == "apiVersion":
			err = once(&o.apiVersion, &c)
			if err != nil {
				return err
			}
			continue
		}
		if _, err := c.value(); err != nil {
			return err
		}
	}
}

// once reads a string that must not have come before.
func once(s *[]byte, c *cursor) error {
	value, err := c.value()
	if err != nil {
		return err
	}
	t, ok := Value{JSON, value.of(c.p)}.Text()
	if !ok || *s != nil {
		return malformed(value.start)
	}
	*s = t
	return nil
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
	before := 0 // where the member before ends
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
			m.managed = span{before, c.at - start} // with the comma before it
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

// fits says whether a field of metadata is of the type that it has.
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

// keys are those of one JSON object. A key that is there twice is an error: which of them
// counts depends on the decoder.
type keys struct {
	seen  [24][]byte
	count int
	more  map[string]bool
}

func (k *keys) add(key []byte) error {
	for _, seen := range k.seen[:k.count] {
		if len(seen) == len(key) && string(seen) == string(key) {
			return fmt.Errorf("%w: the key %s twice", errJSON, key)
		}
	}
	switch {
	case k.count < len(k.seen):
		k.seen[k.count] = key
		k.count++
		return nil
	case k.more == nil:
		k.more = map[string]bool{}
	case k.more[string(key)]:
		return fmt.Errorf("%w: the key %s twice", errJSON, key)
	}
	k.more[string(key)] = true
	return nil
}

// known returns the one of the names that the key with its quotes is, "" if it is none. A
// key that is one but for its case is an error: for some decoders it is that name, and
// what depends on it must not depend on who reads it.
func known(quoted []byte, names ...string) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, name := range names {
		if len(inner) == len(name) {
			if string(inner) == name {
				return name, nil
			}
			if inner[0]|0x20 == name[0]|0x20 && bytes.EqualFold(inner, []byte(name)) {
				return "", fmt.Errorf("%w: the key %s in the place of %s", errJSON, quoted, name)
			}
		}
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return "", nil
	}
	plain, err := unquote(quoted)
	if err != nil || bytes.IndexByte(plain, '"') >= 0 {
		return "", err
	}
	return known(append(append([]byte{'"'}, plain...), '"'), names...)
}

// parseProtobuf goes through a message whose first field is ObjectMeta, as that of every
// object is.
func (o *Object) parseProtobuf(p []byte) error {
	o.raw = p
	o.meta = objectMeta{}
	for i := 0; i < len(p); {
		f, err := nextField(p, i)
		if err != nil {
			return err
		}
		i = f.whole.end
		if f.number != metadata.Number {
			continue
		}
		if f.wire != wireBytes || o.meta.all.raw != nil {
			return errProtobuf
		}
		if err := o.meta.parseProtobuf(f.value.of(p)); err != nil {
			return err
		}
		o.meta.whole = f.whole
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

// region is from the first to the last of the fields with a number.
type region struct {
	span
	torn bool // others are between them
}

func (r *region) add(field span) {
	if r.end == 0 {
		r.start = field.start
	}
	r.torn = r.torn || r.end != 0 && r.end != field.start
	r.end = field.end
}

// isEntry says whether p is an entry of a map and nothing else: what generated decoders
// make of another one, they may read beyond its end, nobody here knows.
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
