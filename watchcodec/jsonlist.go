package watchcodec

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// jsonListWriter takes a list in JSON and sends what the client sees of it, one item after
// the other. It holds no more than an item, and sends the rest as it came, white space
// included.
type jsonListWriter struct {
	w       io.Writer
	a       *answer
	store   []byte
	from    int    // store[:from] is used up
	buf     []byte // store[from:]
	out     []byte
	state   func(*jsonListWriter) (more bool, err error)
	scan    scanner // of the value at the front of buf[gap:]
	scanned int     // how far it has come, or the look for the end of a string or a number
	gap     int     // white space and a comma before an item or a member, as far as it was looked at
	comma   bool    // the comma is in it
	seen    keys
	kind    string // of the list
	version []byte // its apiVersion
	single  []byte // the kind of its items, which need not tell it themselves
	items   int    // that were sent
	members int
	object  Object
	row     row
	rows    bool // the items are rows of a Table
	told    *listHead
	ended   error
}

func newJSONListWriter(w io.Writer, a *answer) *jsonListWriter {
	l := &jsonListWriter{w: w, a: a, state: (*jsonListWriter).start}
	l.object.format = JSON
	l.row.bare = a.bare
	return l
}

func (l *jsonListWriter) Write(p []byte) (int, error) {
	if l.ended != nil {
		return 0, l.ended
	}
	l.keep(p)
	l.out = l.out[:0]
	for more := true; more && l.ended == nil; {
		more, l.ended = l.state(l)
	}
	if l.ended == nil && len(l.buf) > l.a.o.MaxObject {
		l.ended = errTooLarge
	}
	if l.ended != nil {
		return 0, l.ended
	}
	if len(l.out) > 0 {
		if _, err := l.w.Write(l.out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// keep appends p to what is not used up. That is moved to the front only when it is no more than
// what is used up there: an item that comes in small pieces must not be moved for each.
func (l *jsonListWriter) keep(p []byte) {
	if l.from >= len(l.buf) {
		l.store = l.store[:copy(l.store, l.buf)]
		l.from = 0
	}
	l.store = append(l.store, p...)
	l.buf = l.store[l.from:]
}

// Close fails where the list has not ended: the client must not take it for a whole one.
func (l *jsonListWriter) Close() error {
	if l.ended == nil && l.members >= 0 {
		l.ended = io.ErrUnexpectedEOF
	}
	return l.ended
}

// use takes n bytes off the front, having appended what they became to l.out.
func (l *jsonListWriter) use(n int) {
	l.buf = l.buf[n:]
	l.from += n
	l.scan, l.scanned, l.gap, l.comma = scanner{}, 0, 0, false
}

func (l *jsonListWriter) start() (bool, error) {
	i := skipSpace(l.buf, 0)
	if i == len(l.buf) {
		return false, nil
	}
	if l.buf[i] != '{' {
		return false, malformed(i)
	}
	l.out = append(l.out, l.buf[:i+1]...)
	l.use(i + 1)
	l.state = (*jsonListWriter).member
	return true, nil
}

// element looks for the next value behind white space and, if there was one before, a
// comma. At the closing bracket done is true; else it begins at l.gap.
func (l *jsonListWriter) element(before bool, closing byte) (there, done bool, err error) {
	l.gap = skipSpace(l.buf, l.gap)
	if l.gap < len(l.buf) && !l.comma {
		if l.buf[l.gap] == closing {
			l.out = append(l.out, l.buf[:l.gap+1]...)
			l.use(l.gap + 1)
			return true, true, nil
		}
		if before {
			if l.buf[l.gap] != ',' {
				return false, false, malformed(l.gap)
			}
			l.comma = true
			l.gap = skipSpace(l.buf, l.gap+1)
		}
	}
	return l.gap < len(l.buf), false, nil
}

// maxKey bounds a key of the list itself, with the white space behind it: it is looked at again
// with each piece that comes.
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
		return false, malformed(l.gap)
	}
	p = p[:min(len(p), l.gap+maxKey)]
	end, value := stringEnd(p, l.gap+1), len(p)
	if end >= 0 {
		value = skipSpace(p, end+1)
	}
	if value < len(p) {
		if p[value] != ':' {
			return false, malformed(value)
		}
		value = skipSpace(p, value+1)
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
	name, err := known(key, "kind", "apiVersion", "metadata", "items")
	if err != nil {
		return false, err
	}
	table := l.kind == tableKind && l.a.o.Tables
	rows := table && sameKey(key, tableRows)
	if name == "" && l.kind != "Status" && !rows && !(table && sameKey(key, tableColumns)) {
		return false, fmt.Errorf("watchcodec: a list with the key %s, which may hold anything", key)
	}
	if (name == "items" || rows) && l.buf[value] == '[' {
		l.rows = rows
		if err := l.begin(key); err != nil {
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
	if checked, err := skipValue(l.buf, value); err != nil || checked != end {
		return false, malformed(value)
	}
	if err := l.begin(key); err != nil {
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
	if l.told != nil {
		l.told.kind, l.told.apiVersion = l.kind, string(l.version)
		if name == "metadata" {
			l.told.meta = bytes.Clone(v)
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

// begin notes a member.
func (l *jsonListWriter) begin(key []byte) error {
	l.members++
	return l.seen.add(append([]byte(nil), key...))
}

// withoutCount appends a list's metadata without the number of the items of later pages,
// which would tell of those that are not seen.
func withoutCount(dst, meta []byte) ([]byte, error) {
	o := Object{format: JSON, raw: meta}
	e := Delete(Field{Name: "remainingItemCount"})
	dst, changed, err := e.apply(&o, dst)
	if err == nil && !changed {
		dst = append(dst, meta...)
	}
	return dst, err
}

// complete returns the index behind the value that begins at i, if all of it is there.
func (l *jsonListWriter) complete(i int) (end int, ok bool) {
	switch l.buf[i] {
	case '"':
		end, l.scanned = findStringEnd(l.buf, max(l.scanned, i+1))
		return end + 1, end >= 0
	case '{', '[':
		from := max(l.scanned, i)
		n, complete := l.scan.skip(l.buf[from:])
		l.scanned = from + n
		return l.scanned, complete
	}
	for end = max(l.scanned, i); end < len(l.buf); end++ {
		if c := l.buf[end]; isSpace(c) || c == ',' || c == '}' || c == ']' {
			return end, true
		}
	}
	l.scanned = end
	return end, false
}

// item takes the next item of the list.
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
		return false, malformed(l.gap)
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

// parseItem parses the item at l.gap, if all of it is there. One that is not yet when it is
// first looked at is looked at again when its end has come.
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
		return end, false, fmt.Errorf("watchcodec: item of a list: %w", firstOf(err, malformed(l.gap)))
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
	if !l.rows && (len(object.kind) == 0 || len(object.apiVersion) == 0) { // a row's object tells it itself
		return errKind
	}
	visible, err := l.a.rewrite(object)
	if err != nil {
		return err
	}
	gap := l.buf[:l.gap]
	switch {
	case !visible && l.items == 0:
		l.items = -1 // there was one, and what comes first has a comma before it
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

// rest takes what is behind the list: white space.
func (l *jsonListWriter) rest() (bool, error) {
	if i := skipSpace(l.buf, 0); i < len(l.buf) {
		return false, malformed(i)
	}
	l.out = append(l.out, l.buf...)
	l.use(len(l.buf))
	return false, nil
}
