package watchcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// errTooLarge is the error of an object, or of another value, over its limit.
var errTooLarge = errors.New("watchcodec: response over the limit")

// jsonListParser parses a list in JSON, item by item. It holds no more than an item.
type jsonListParser struct {
	parts   listParts
	rules   listRules
	store   []byte
	from    int    // store[:from] is consumed
	buf     []byte // store[from:]
	state   func(*jsonListParser) (more bool, err error)
	scan    scan.Scanner // of the value at the front of buf[gap:]
	scanned int          // how much of it was scanned
	gap     int          // length of the white space and comma before an item or a member, as far as it was scanned
	comma   bool         // the gap includes the comma
	seen    scan.Keys
	kind    []byte // of the list
	version []byte // the list's apiVersion
	single  []byte // the kind of the items, which need not have one of their own
	items   bool   // there was an item before
	listed  bool   // the list has items, or rows
	members int    // -1: the list has ended
	object  Object
	row     row
	rows    bool // the items are rows of a Table
	err     error
}

// init initializes l, which is a part of its user's memory.
func (l *jsonListParser) init(parts listParts, rules listRules) {
	l.parts, l.rules, l.state = parts, rules, (*jsonListParser).start
}

func (l *jsonListParser) Write(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.keep(p)
	for more := true; more && l.err == nil; {
		more, l.err = l.state(l)
	}
	if l.err == nil && l.gap > l.rules.maxObject {
		l.err = errTooLarge // of white space
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}

// keep appends p to buf. The remaining bytes are moved to the front only if they are no more than
// the consumed ones: an item that is received in small pieces must not be moved for each of them.
func (l *jsonListParser) keep(p []byte) {
	if l.from >= len(l.buf) {
		l.store = l.store[:copy(l.store, l.buf)]
		l.from = 0
	}
	l.store = append(l.store, p...)
	l.buf = l.store[l.from:]
}

// Close fails if the list has not ended: it must not be taken for a whole one.
func (l *jsonListParser) Close() error {
	if l.err == nil && l.members >= 0 {
		l.err = io.ErrUnexpectedEOF
	}
	return l.err
}

func (l *jsonListParser) typeMeta() (apiVersion, kind string) {
	return string(l.version), string(l.kind)
}

// isList reports whether what was received shows that the object is a list, or what may be in the
// place of one.
func (l *jsonListParser) isList() bool {
	return l.listed || bytes.HasSuffix(l.kind, []byte("List")) || l.rules.status && string(l.kind) == "Status" || l.isTable()
}

func (l *jsonListParser) isTable() bool { return l.rules.tables && string(l.kind) == tableKind }

// use removes n bytes from the front.
func (l *jsonListParser) use(n int) {
	l.buf = l.buf[n:]
	l.from += n
	l.scan, l.scanned, l.gap, l.comma = scan.Scanner{}, 0, 0, false
}

// pass passes n bytes on as they are, and removes them.
func (l *jsonListParser) pass(n int) error {
	err := l.parts.verbatim(l.buf[:n])
	l.use(n)
	return err
}

func (l *jsonListParser) start() (bool, error) {
	i := scan.SkipSpace(l.buf, 0)
	if i == len(l.buf) {
		return false, l.pass(i)
	}
	if l.buf[i] != '{' {
		return false, scan.Malformed(i)
	}
	l.state = (*jsonListParser).member
	return true, l.pass(i + 1)
}

// element looks for the next value after white space and, if there was one before, a comma. At the
// closing bracket, which it passes on, done is true; else the value begins at l.gap.
func (l *jsonListParser) element(before bool, closing byte) (there, done bool, err error) {
	l.gap = scan.SkipSpace(l.buf, l.gap)
	if l.gap < len(l.buf) && !l.comma {
		if l.buf[l.gap] == closing {
			return true, true, l.pass(l.gap + 1)
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

func (l *jsonListParser) member() (bool, error) {
	there, done, err := l.element(l.members > 0, '}')
	if err != nil || !there {
		return false, err
	}
	if done {
		if !l.isList() {
			return false, noList(l.kind)
		}
		l.members = -1
		l.state = (*jsonListParser).rest
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

func (l *jsonListParser) memberValue(key []byte, value int) (bool, error) {
	name, err := scan.Known(key, "kind", "apiVersion", "metadata", "items")
	if err != nil {
		return false, err
	}
	rows := l.isTable() && scan.SameKey(key, tableRows)
	switch {
	case name != "" || rows || l.isTable() && scan.SameKey(key, tableColumns):
	case string(l.kind) != "Status":
		return false, fmt.Errorf("watchcodec: a list with the key %s, which may hold anything", key)
	case !l.rules.status:
		return false, noList(l.kind)
	}
	if (name == "items" || rows) && l.buf[value] == '[' {
		l.rows, l.listed = rows, true
		l.state = (*jsonListParser).item
		return true, firstOf(l.addMember(key), l.pass(value+1))
	}
	end, ok, err := l.complete(value)
	if err != nil || !ok {
		return false, err
	}
	if checked, err := scan.SkipValue(l.buf, value); err != nil || checked != end {
		return false, scan.Malformed(value)
	}
	if err := l.addMember(key); err != nil {
		return false, err
	}
	v := l.buf[value:end]
	if !fitsList(name, v) {
		return false, scan.Malformed(value)
	}
	switch text, _ := (Value{JSON, v}).Text(); name {
	case "kind":
		l.kind = bytes.Clone(text)
		if single, ok := bytes.CutSuffix(l.kind, []byte("List")); ok {
			l.single = single
		}
	case "apiVersion":
		l.version = bytes.Clone(text)
	case "metadata":
		if v[0] != '{' {
			break
		}
		err := firstOf(l.parts.verbatim(l.buf[:value]), l.parts.metadata(v))
		l.use(end)
		return true, err
	}
	return true, l.pass(end)
}

// fitsList reports whether a member of a list has its JSON type, or is null: others pass as they are, and
// so would objects in the place of its items. The items themselves have been parsed.
func fitsList(name string, raw []byte) bool {
	if string(raw) == "null" {
		return true
	}
	switch name {
	case "kind", "apiVersion":
		return raw[0] == '"'
	case "metadata":
		return raw[0] == '{'
	}
	return name != "items"
}

// addMember counts a member and checks its key.
func (l *jsonListParser) addMember(key []byte) error {
	l.members++
	return l.seen.Add(append([]byte(nil), key...))
}

// complete returns the index after the value that begins at i, and reports whether all of it was
// received.
func (l *jsonListParser) complete(i int) (end int, ok bool, err error) {
	switch l.buf[i] {
	case '"':
		end, l.scanned = scan.FindStringEnd(l.buf, max(l.scanned, i+1))
		end, ok = end+1, end >= 0
	case '{', '[':
		from := max(l.scanned, i)
		var n int
		n, ok = l.scan.Skip(l.buf[from:])
		l.scanned = from + n
		end = l.scanned
	default:
		for end = max(l.scanned, i); end < len(l.buf) && !ok; {
			if c := l.buf[end]; scan.IsSpace(c) || c == ',' || c == '}' || c == ']' {
				ok = true
			} else {
				end++
			}
		}
		l.scanned = end
	}
	if ok && end-i > l.rules.maxObject || !ok && len(l.buf)-i > l.rules.maxObject {
		return end, false, errTooLarge
	}
	return end, ok, nil
}

// item parses the next item of the list.
func (l *jsonListParser) item() (bool, error) {
	there, done, err := l.element(l.items, ']')
	if err != nil || !there {
		return false, err
	}
	if done {
		l.state = (*jsonListParser).member
		return true, nil
	}
	if l.buf[l.gap] != '{' {
		return false, scan.Malformed(l.gap)
	}
	end, ok, err := l.parseItem()
	if err != nil || !ok {
		return false, err
	}
	l.items = true
	err = l.takeItem()
	l.use(end)
	return true, err
}

// parseItem parses the item at l.gap, and reports whether all of it was received. An item that is
// incomplete at first is parsed again when its end was received.
func (l *jsonListParser) parseItem() (end int, ok bool, err error) {
	l.object.reset(JSON)
	if l.rows {
		if end, ok, err = l.complete(l.gap); ok {
			err = l.row.parse(l.buf[l.gap:end])
		}
		return end, ok, err
	}
	if l.scanned == 0 {
		if end, err = l.object.parseText(l.buf, l.gap); err == nil {
			if end-l.gap > l.rules.maxObject {
				err = errTooLarge
			}
			return end, true, err
		}
	}
	end, ok, err = l.complete(l.gap)
	if !ok {
		return end, false, err
	}
	parsed, err := l.object.parseText(l.buf, l.gap)
	if err != nil || parsed != end {
		return end, false, fmt.Errorf("watchcodec: item of a list: %w", firstOf(err, scan.Malformed(l.gap)))
	}
	return end, true, nil
}

// takeItem passes the parsed item on, with the kind that it has from the list.
func (l *jsonListParser) takeItem() error {
	before := l.buf[:l.gap]
	object, r := &l.object, (*row)(nil)
	if l.rows {
		object, r = &l.row.object, &l.row
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
	return l.parts.item(before, object, r)
}

// rest parses the white space after the list.
func (l *jsonListParser) rest() (bool, error) {
	if i := scan.SkipSpace(l.buf, 0); i < len(l.buf) {
		return false, scan.Malformed(i)
	}
	return false, l.pass(len(l.buf))
}
