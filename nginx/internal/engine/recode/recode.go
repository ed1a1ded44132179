// Package recode converts streams from one charset to another, by maps of nginx's charset_map.
package recode

import (
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// Map maps the characters of a charset with one byte a character to those of another, or to UTF-8.
// Those below 128 are the same in both until Add says otherwise; all others are unknown, and
// become "?".
type Map struct {
	utf8     bool
	forward  [256]string
	backward [256]byte     // if the other is not UTF-8
	bytes    map[rune]byte // if it is
}

// NewMap returns a Map without pairs; utf8 says that the second charset is UTF-8.
func NewMap(utf8 bool) *Map {
	m := &Map{utf8: utf8, bytes: map[rune]byte{}}
	for i := range m.forward {
		m.forward[i], m.backward[i] = "?", '?'
		if i < utf8SelfEnd {
			m.forward[i], m.backward[i] = string(rune(i)), byte(i)
			m.bytes[rune(i)] = byte(i)
		}
	}
	return m
}

// utf8SelfEnd is the first byte that is not a character of its own in UTF-8.
const utf8SelfEnd = utf8.RuneSelf

// errCharacter is the error of Add.
var errCharacter = errors.New("not one character")

// Add adds a pair. to must be a byte, or the encoding of one character of up to three bytes for
// UTF-8.
func (m *Map) Add(from byte, to string) error {
	if !m.utf8 {
		if len(to) != 1 {
			return errCharacter
		}
		m.forward[from], m.backward[to[0]] = to, from
		return nil
	}
	r, size := utf8.DecodeRuneInString(to)
	if size != len(to) || size > 3 || r == utf8.RuneError && size <= 1 {
		return errCharacter
	}
	m.forward[from], m.bytes[r] = to, from
	return nil
}

// Table is one direction of a Map.
type Table struct {
	of       *Map
	backward bool
}

// Forward returns the direction of the pairs.
func (m *Map) Forward() Table { return Table{m, false} }

// Backward returns the opposite direction. Characters of UTF-8 that have no byte become references
// of HTML, as "&#8364;".
func (m *Map) Backward() Table { return Table{m, true} }

// KeepsLength reports whether the content has as many bytes as before.
func (t Table) KeepsLength() bool { return !t.of.utf8 }

// NewWriter returns a writer that passes to w what is written to it in the other charset. Its
// Close writes the rest, and does not close w.
func (t Table) NewWriter(w io.Writer) io.WriteCloser { return &writer{Table: t, w: w} }

// writer is that of one content.
type writer struct {
	Table
	w       io.Writer
	partial []byte // the beginning of a character of UTF-8
	out     []byte
}

// Write implements io.Writer. An incomplete character is kept for the next call.
func (w *writer) Write(p []byte) (int, error) {
	w.out = w.out[:0]
	if w.backward && w.of.utf8 {
		w.decode(p, false)
	} else {
		w.convert(p)
	}
	if len(w.out) == 0 {
		return len(p), nil
	}
	if _, err := w.w.Write(w.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// convert appends characters of one byte.
func (w *writer) convert(p []byte) {
	for _, c := range p {
		if w.backward {
			w.out = append(w.out, w.of.backward[c])
		} else {
			w.out = append(w.out, w.of.forward[c]...)
		}
	}
}

// decode appends characters of UTF-8. Each byte that belongs to none becomes "?"; none of its
// neighbours is lost, which might be a tag.
func (w *writer) decode(p []byte, last bool) {
	data := p
	if len(w.partial) > 0 {
		data = append(w.partial, p...)
	}
	for len(data) > 0 {
		if !last && !utf8.FullRune(data) {
			break
		}
		r, size := utf8.DecodeRune(data)
		c, known := w.of.bytes[r]
		switch {
		case r == utf8.RuneError && size == 1:
			w.out = append(w.out, '?')
		case known:
			w.out = append(w.out, c)
		default:
			w.out = append(strconv.AppendInt(append(w.out, "&#"...), int64(r), 10), ';')
		}
		data = data[size:]
	}
	w.partial = append([]byte(nil), data...)
}

// Flush is for streams. An incomplete character is kept.
func (w *writer) Flush() error { return nil }

// Close writes the bytes of an incomplete character.
func (w *writer) Close() error {
	if len(w.partial) == 0 {
		return nil
	}
	w.out = w.out[:0]
	w.decode(nil, true)
	_, err := w.w.Write(w.out)
	return err
}
