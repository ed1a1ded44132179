package watchcodec

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// jsonListWriter takes a list in JSON and sends the part that the client sees, item by item. It
// holds no more than an item, and sends everything else as it was received, white space included.
type jsonListWriter struct {
	w       io.Writer
	x       *exchange
	store   []byte
	from    int    // store[:from] is consumed
	buf     []byte // store[from:]
	out     []byte
	state   func(*jsonListWriter) (more bool, err error)
	scan    scan.Scanner // of the value at the front of buf[gap:]
	scanned int          // how much of it was scanned
	gap     int          // length of the white space and comma before an item or a member, as far as it was scanned
	comma   bool         // the gap includes the comma
	seen    scan.Keys
	kind    string // of the list
	version []byte // the list's apiVersion
	single  []byte // the kind of the items, which need not have one of their own
	items   int    // the number of items that were sent; -1: the first ones are all hidden
	members int
	object  Object
	row     row
	rows    bool // the items are rows of a Table
	info    *listInfo
	err     error
}

func newJSONListWriter(w io.Writer, x *exchange) *jsonListWriter {
	l := &jsonListWriter{w: w, x: x, state: (*jsonListWriter).start}
	l.object.format = JSON
	l.row.bare = x.bare
	return l
}

func (l *jsonListWriter) Write(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.keep(p)
	l.out = l.out[:0]
	for more := true; more && l.err == nil; {
		more, l.err = l.state(l)
	}
	if l.err == nil && len(l.buf) > l.x.o.MaxObject {
		l.err = errTooLarge
	}
	if l.err != nil {
		return 0, l.err
	}
	if len(l.out) > 0 {
		if _, err := l.w.Write(l.out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// keep appends p to buf. The remaining bytes are moved to the front only if they are no more than
// the consumed ones: an item that is received in small pieces must not be moved for each of them.
func (l *jsonListWriter) keep(p []byte) {
	if l.from >= len(l.buf) {
		l.store = l.store[:copy(l.store, l.buf)]
		l.from = 0
	}
	l.store = append(l.store, p...)
	l.buf = l.store[l.from:]
}

// Close fails if the list has not ended: the client must not take it for a whole one.
func (l *jsonListWriter) Close() error {
	if l.err == nil && l.members >= 0 {
		l.err = io.ErrUnexpectedEOF
	}
	return l.err
}

// use removes n bytes from the front, of which the replacement is in l.out already.
func (l *jsonListWriter) use(n int) {
	l.buf = l.buf[n:]
	l.from += n
	l.scan, l.scanned, l.gap, l.comma = scan.Scanner{}, 0, 0, false
}

func (l *jsonListWriter) start() (bool, error) {
	i := scan.SkipSpace(l.buf, 0)
	if i == len(l.buf) {
		return false, nil
	}
	if l.buf[i] != '{' {
		return false, scan.Malformed(i)
	}
	l.out = append(l.out, l.buf[:i+1]...)
	l.use(i + 1)
	l.state = (*jsonListWriter).member
	return true, nil
}

// element looks for the next value after white space and, if there was one before, a comma. At the
// closing bracket done is true; else the value begins at l.gap.
func (l *jsonListWriter) element(before bool, closing byte) (there, done bool, err error) {
	l.gap = scan.SkipSpace(l.buf, l.gap)
	if l.gap < len(l.buf) && !l.comma {
		if l.buf[l.gap] == closing {
			l.out = append(l.out, l.buf[:l.gap+1]...)
			l.use(l.gap + 1)
			return true, true, nil
		}
		if before {
			if l.buf[l.gap] != ',' {
				return false, false, scan.Malformed(l.gap)
			}
			l.comma = true
			l.gap = scan.SkipSpace(l.buf, l.gap+1)
		}
	}
	return l.gap < len(l.buf), false, nil
}

// maxKey bounds a key of the list itself, with the white space after it: it is scanned again with
// each piece that is received.
const maxKey = 4 << 10

func (l *jsonListWriter) member() (bool, error) {
	there, done, err := l.element(l.members > 0, '}')
	if err != nil || !there {
		return false, err
	}
	if done {
		l.members = -1
		l.state = (*jsonListWriter).rest
		return true, nil
	}
	p := l.buf
	if p[l.gap] != '"' {
		return false, scan.Malformed(l.gap)
	}
	p = p[:min(len(p), l.gap+maxKey)]
	end, value := scan.StringEnd(p, l.gap+1), len(p)
	if end >= 0 {
		value = scan.SkipSpace(p, end+1)
	}
	if value < len(p) {
		if p[value] != ':' {
			return false, scan.Malformed(value)
		}
		value = scan.SkipSpace(p, value+1)
	}
	switch {
	case value < len(p):
		return l.memberValue(p[l.gap:end+1], value)
	case len(p) == l.gap+maxKey:
		return false, errTooLarge
	}
	return false, nil
}

func (l *jsonListWriter) memberValue(key []byte, value int) (bool, error) {
	name, err := scan.Known(key, "kind", "apiVersion", "metadata", "items")
	if err != nil {
		return false, err
	}
	table := l.kind == tableKind && l.x.o.Tables
	rows := table && scan.SameKey(key, tableRows)
	if name == "" && l.kind != "Status" && !rows && !(table && scan.SameKey(key, tableColumns)) {
		return false, fmt.Errorf("watchcodec: a list with the key %s, which may hold anything", key)
	}
	if (name == "items" || rows) && l.buf[value] == '[' {
		l.rows = rows
		if err := l.addMember(key); err != nil {
			return false, err
		}
		l.out = append(l.out, l.buf[:value+1]...)
		l.use(value + 1)
		l.state = (*jsonListWriter).item
		return true, nil
	}
	end, ok := l.complete(value)
	if !ok {
		return false, nil
	}
	if checked, err := scan.SkipValue(l.buf, value); err != nil || checked != end {
		return false, scan.Malformed(value)
	}
	if err := l.addMember(key); err != nil {
		return false, err
	}
	v := l.buf[value:end]
	switch text, _ := (Value{JSON, v}).Text(); name {
	case "kind":
		l.kind = string(text)
		if single, ok := strings.CutSuffix(l.kind, "List"); ok {
			l.single = []byte(single)
		}
	case "apiVersion":
		l.version = bytes.Clone(text)
	}
	if l.info != nil {
		l.info.kind, l.info.apiVersion = l.kind, string(l.version)
		if name == "metadata" {
			l.info.meta = bytes.Clone(v)
		}
	}
	l.out = append(l.out, l.buf[:value]...)
	if name == "metadata" && v[0] == '{' {
		l.out, err = withoutCount(l.out, v)
	} else {
		l.out = append(l.out, v...)
	}
	l.use(end)
	return true, err
}

// addMember counts a member and checks its key.
func (l *jsonListWriter) addMember(key []byte) error {
	l.members++
	return l.seen.Add(append([]byte(nil), key...))
}

// withoutCount appends a list's metadata without the number of the items on later pages, which
// would reveal how many are hidden.
func withoutCount(dst, meta []byte) ([]byte, error) {
	o := Object{format: JSON, raw: meta}
	e := Delete(Field{Name: "remainingItemCount"})
	dst, changed, err := e.apply(&o, dst)
	if err == nil && !changed {
		dst = append(dst, meta...)
	}
	return dst, err
}

// complete returns the index after the value that begins at i, and reports whether all of it was
// received.
func (l *jsonListWriter) complete(i int) (end int, ok bool) {
	switch l.buf[i] {
	case '"':
		end, l.scanned = scan.FindStringEnd(l.buf, max(l.scanned, i+1))
		return end + 1, end >= 0
	case '{', '[':
		from := max(l.scanned, i)
		n, complete := l.scan.Skip(l.buf[from:])
		l.scanned = from + n
		return l.scanned, complete
	}
	for end = max(l.scanned, i); end < len(l.buf); end++ {
		if c := l.buf[end]; scan.IsSpace(c) || c == ',' || c == '}' || c == ']' {
			return end, true
		}
	}
	l.scanned = end
	return end, false
}

// item rewrites the next item of the list.
func (l *jsonListWriter) item() (bool, error) {
	there, done, err := l.element(l.items != 0, ']')
	if err != nil || !there {
		return false, err
	}
	if done {
		l.state = (*jsonListWriter).member
		return true, nil
	}
	if l.buf[l.gap] != '{' {
		return false, scan.Malformed(l.gap)
	}
	end, ok, err := l.parseItem()
	if err != nil || !ok {
		return false, err
	}
	if err := l.rewrite(); err != nil {
		return false, err
	}
	l.use(end)
	return true, nil
}

func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// parseItem parses the item at l.gap, and reports whether all of it was received. An item that is
// incomplete at first is parsed again when its end was received.
func (l *jsonListWriter) parseItem() (end int, ok bool, err error) {
	l.object.reset(JSON)
	if l.rows {
		if end, ok = l.complete(l.gap); ok {
			err = l.row.parse(l.buf[l.gap:end])
		}
		return end, ok, err
	}
	if l.scanned == 0 {
		if end, err = l.object.parseText(l.buf, l.gap); err == nil {
			return end, true, nil
		}
	}
	end, ok = l.complete(l.gap)
	if !ok {
		return end, false, nil
	}
	parsed, err := l.object.parseText(l.buf, l.gap)
	if err != nil || parsed != end {
		return end, false, fmt.Errorf("watchcodec: item of a list: %w", firstOf(err, scan.Malformed(l.gap)))
	}
	return end, true, nil
}

func (l *jsonListWriter) rewrite() error {
	object := &l.object
	if l.rows {
		object = &l.row.object
	}
	if object.kind == nil {
		object.kind = l.single
	}
	if object.apiVersion == nil {
		object.apiVersion = l.version
	}
	if !l.rows && (len(object.kind) == 0 || len(object.apiVersion) == 0) { // a row's object has its own
		return errKind
	}
	visible, err := l.x.rewrite(object)
	if err != nil {
		return err
	}
	gap := l.buf[:l.gap]
	switch {
	case !visible && l.items == 0:
		l.items = -1 // there was an item, so the first one that is sent has a comma before it
	case visible && l.items < 0:
		for _, c := range gap {
			if c != ',' {
				l.out = append(l.out, c)
			}
		}
		l.items = 1
		l.appendItem()
	case visible:
		l.items++
		l.out = append(l.out, gap...)
		l.appendItem()
	}
	return nil
}

func (l *jsonListWriter) appendItem() {
	if l.rows {
		l.out = l.row.append(l.out)
	} else {
		l.out = append(l.out, l.object.raw...)
	}
}

// rest takes the white space after the list.
func (l *jsonListWriter) rest() (bool, error) {
	if i := scan.SkipSpace(l.buf, 0); i < len(l.buf) {
		return false, scan.Malformed(i)
	}
	l.out = append(l.out, l.buf...)
	l.use(len(l.buf))
	return false, nil
}
