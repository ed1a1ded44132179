package watchcodec

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// errKind is the error of an object whose kind is unknown, so that it can't be decided whether the
// client sees it.
var errKind = errors.New("watchcodec: an object of unknown kind or apiVersion")

// Object is a Kubernetes object in its encoding: it decodes only what its methods are called for.
// What they return shares the memory of the frame, and is valid until the next frame is read or the
// object is edited. An Object must not be copied after an edit, and must not be used by several
// goroutines at the same time.
type Object struct {
	format           Format
	raw              []byte // JSON's text, protobuf's message
	kind, apiVersion []byte // without quotes
	meta             objectMeta
	edited           bool
	stale            bool         // meta is that before the last edit
	splices          []splice     // of the last edit
	window           *scan.Window // of the text
	sealed           scan.Span    // where the object is in its envelope
	hasKind          bool         // the object has a kind of its own, in JSON
	scratch          scratch
	// original holds the kind and the apiVersion before the first edit, from the object, its list
	// or its envelope. Unlike kind and apiVersion they are never in scratch.
	original struct{ kind, apiVersion []byte }
}

// Format returns the encoding of the object.
func (o *Object) Format() Format { return o.format }

// Value returns the whole object.
func (o *Object) Value() Value { return Value{o.format, o.raw} }

// Changed reports whether an edit has changed the object's bytes.
func (o *Object) Changed() bool { return o.edited }

// Kind returns the object's kind, "Pod" for instance, even if it is known from the object's list
// only.
func (o *Object) Kind() []byte {
	o.refresh()
	return o.kind
}

// APIVersion returns the object's group and version, "apps/v1" or "v1" for instance.
func (o *Object) APIVersion() []byte {
	o.refresh()
	return o.apiVersion
}

// Name returns metadata.name, empty if there is none.
func (o *Object) Name() []byte { return o.text(&o.meta.name) }

// Namespace returns metadata.namespace, empty if there is none.
func (o *Object) Namespace() []byte { return o.text(&o.meta.namespace) }

// UID returns metadata.uid, empty if there is none.
func (o *Object) UID() []byte { return o.text(&o.meta.uid) }

// ResourceVersion returns metadata.resourceVersion, empty if there is none.
func (o *Object) ResourceVersion() []byte { return o.text(&o.meta.version) }

func (o *Object) text(v *Value) []byte {
	if o.refresh(); v.raw == nil {
		return nil
	}
	t, _ := v.Text()
	return t
}

// Edit applies edits to the object, in their order. An edit that changes nothing leaves the object
// unchanged. After an error the object must not be used any more.
func (o *Object) Edit(edits ...Edit) error {
	for i := range edits {
		out, changed, err := edits[i].apply(o, o.scratch.free())
		if err != nil {
			return fmt.Errorf("watchcodec: edit: %w", err)
		}
		o.edit(out, changed && !bytes.Equal(out, o.raw))
	}
	return nil
}

// edit takes the bytes that were appended to o.scratch.free(). If changed is true, they are the
// object's new encoding.
func (o *Object) edit(out []byte, changed bool) {
	o.scratch.keep(out, changed)
	if changed {
		o.become(out)
	}
}

// become makes raw the object's encoding.
func (o *Object) become(raw []byte) {
	if !o.edited {
		o.original.kind, o.original.apiVersion = o.kind, o.apiVersion
	}
	o.raw, o.edited, o.stale = raw, true, true
}

// Parse makes o the object that is encoded in raw, as an item of a list is: in protobuf without an
// envelope, in JSON with or without its kind and apiVersion, for which the arguments are used then.
// raw must not be changed as long as o is used, and must not be memory that o has returned.
func (o *Object) Parse(f Format, apiVersion, kind string, raw []byte) error {
	o.reset(f)
	end, err := o.parse(raw)
	if err == nil && end != len(raw) {
		err = scan.Malformed(end)
	}
	if f == Protobuf || o.kind == nil {
		o.kind, o.apiVersion = []byte(kind), []byte(apiVersion)
	}
	return err
}

// AppendRaw appends the object's encoding as Parse accepts it, in JSON with its kind and
// apiVersion.
func (o *Object) AppendRaw(dst []byte) []byte {
	if o.format == JSON {
		return o.appendText(dst)
	}
	return append(dst, o.raw...)
}

// AppendResponse appends the object as an API server sends it in a response: in protobuf in an
// envelope, in JSON with a newline after it.
func (o *Object) AppendResponse(dst []byte) []byte {
	if o.format == JSON {
		return append(o.appendText(dst), '\n')
	}
	return appendSealed(dst, o.apiVersion, o.kind, o.raw)
}

// parse parses p, the object's encoding, from its first byte on, and returns the index after it.
// In protobuf it does not set the kind, which is not in the message.
func (o *Object) parse(p []byte) (end int, err error) {
	if o.format == JSON {
		return o.parseText(p, scan.SkipSpace(p, 0))
	}
	return len(p), o.parseProtobuf(p)
}

// reset makes o an empty object that reuses its memory.
func (o *Object) reset(f Format) {
	*o = Object{format: f, scratch: scratch{buffers: o.scratch.buffers}, splices: o.splices[:0], window: o.window}
}

// refresh parses the object again after an edit.
func (o *Object) refresh() {
	if !o.stale {
		return
	}
	o.stale = false
	_, _ = o.parse(o.raw) // it was well-formed, and edits leave it so
	if o.kind == nil || o.format == Protobuf {
		o.kind = o.original.kind
	}
	if o.apiVersion == nil || o.format == Protobuf {
		o.apiVersion = o.original.apiVersion
	}
}

// parseText parses the object at p[i] and returns the index after it.
func (o *Object) parseText(p []byte, i int) (end int, err error) {
	c := scan.Cursor{Text: p, At: i, Window: o.resetWindow()}
	err = o.parseJSON(&c)
	return c.At, err
}

// resetWindow returns o's window, emptied for another text.
func (o *Object) resetWindow() *scan.Window {
	if o.window == nil {
		o.window = new(scan.Window)
	}
	o.window.Reset()
	return o.window
}

// parseJSON parses the object at outer.at in one pass, down to the fields of metadata.
func (o *Object) parseJSON(outer *scan.Cursor) error {
	p, start := outer.Text, outer.At
	c, err := scan.Enter(p, start, '{', outer.Window)
	if err != nil {
		return err
	}
	o.kind, o.apiVersion, o.meta, o.hasKind = nil, nil, objectMeta{}, false
	var seen scan.Keys
	for {
		more, err := c.More()
		if err != nil {
			return err
		}
		if !more {
			o.raw, outer.At = p[start:c.At], c.At
			return nil
		}
		key, err := c.Key()
		if err != nil {
			return err
		}
		if err := seen.Add(key.Of(p)); err != nil {
			return err
		}
		switch k, err := scan.Known(key.Of(p), "kind", "apiVersion", "metadata"); {
		case err != nil:
			return err
		case k == "metadata" && c.At < len(p) && p[c.At] == '{':
			at := c.At - start
			if err = o.meta.parseJSON(&c); err != nil {
				return err
			}
			o.meta.whole = scan.Span{Start: at, End: c.At - start}
			continue
		case k == "metadata":
			value, err := c.Value()
			if err != nil || string(value.Of(p)) != "null" {
				return firstOf(err, scan.Malformed(value.Start))
			}
			continue
		case k == "kind":
			o.hasKind = true
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
		if _, err := c.Value(); err != nil {
			return err
		}
	}
}

// once parses a string that must not be set already.
func once(s *[]byte, c *scan.Cursor) error {
	value, err := c.Value()
	if err != nil {
		return err
	}
	t, ok := Value{JSON, value.Of(c.Text)}.Text()
	if !ok || *s != nil {
		return scan.Malformed(value.Start)
	}
	*s = t
	return nil
}

// parseProtobuf parses a message whose field 1 is ObjectMeta, as that of every object is.
func (o *Object) parseProtobuf(p []byte) error {
	o.raw = p
	o.meta = objectMeta{}
	for i := 0; i < len(p); {
		f, err := scan.NextField(p, i)
		if err != nil {
			return err
		}
		i = f.Whole.End
		if f.Number != metadata.Number {
			continue
		}
		if f.Wire != scan.WireBytes || o.meta.all.raw != nil {
			return scan.ErrProtobuf
		}
		if err := o.meta.parseProtobuf(f.Value.Of(p)); err != nil {
			return err
		}
		o.meta.whole = f.Whole
	}
	return nil
}
