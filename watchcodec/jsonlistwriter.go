package watchcodec

import "io"

// jsonListWriter sends the part of a list in JSON that the client sees, item by item, and
// everything else as it was received, white space included. Nothing is sent before it is known that
// the object is a list.
type jsonListWriter struct {
	w      io.Writer
	x      *exchange
	list   jsonListParser
	out    []byte
	hidden bool // there was an item, and no item was sent
	sent   bool // an item was sent
}

func newJSONListWriter(w io.Writer, x *exchange) *jsonListWriter {
	l := &jsonListWriter{w: w, x: x}
	l.list.init(l, x.listRules())
	l.list.row.bare = x.bare
	return l
}

func (l *jsonListWriter) Write(p []byte) (int, error) {
	if _, err := l.list.Write(p); err != nil {
		return 0, err
	}
	switch {
	case len(l.out) == 0:
		return len(p), nil
	case !l.list.isList() && len(l.out) > l.x.o.MaxObject:
		l.list.err = errTooLarge
		return 0, l.list.err
	case !l.list.isList():
		return len(p), nil
	}
	_, err := l.w.Write(l.out)
	if l.out = l.out[:0]; err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close fails if the list has not ended: the client must not take it for a whole one.
func (l *jsonListWriter) Close() error { return l.list.Close() }

// verbatim implements listParts.
func (l *jsonListWriter) verbatim(p []byte) error {
	l.out = append(l.out, p...)
	return nil
}

// metadata implements listParts. It removes the number of the items on later pages, which would
// reveal how many are hidden.
func (l *jsonListWriter) metadata(p []byte) (err error) {
	o := Object{format: JSON, raw: p}
	e := Delete(Field{Name: "remainingItemCount"})
	for changed := true; changed && err == nil; { // an edit removes the first: that there is none other is not known
		o.edited = false
		err = o.Edit(e)
		changed = o.edited
	}
	l.out = append(l.out, o.raw...)
	return err
}

// item implements listParts.
func (l *jsonListWriter) item(before []byte, o *Object, r *row) error {
	visible, err := l.x.rewrite(o)
	switch {
	case err != nil:
		return err
	case !visible:
		l.hidden = !l.sent
		return nil
	case l.hidden: // the first item that is sent has no comma before it
		for _, c := range before {
			if c != ',' {
				l.out = append(l.out, c)
			}
		}
	default:
		l.out = append(l.out, before...)
	}
	l.hidden, l.sent = false, true
	if r != nil {
		l.out = r.append(l.out)
	} else {
		l.out = append(l.out, o.raw...)
	}
	return nil
}
