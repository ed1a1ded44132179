package vars

import (
	"strings"
	"unicode/utf8"
)

// Escape is how a variable's value is escaped in a log line.
type Escape int

const (
	// EscapeDefault writes '"', '\', control characters and bytes above 126 as \xXX, and "-" for
	// a variable without a value.
	EscapeDefault Escape = iota
	// EscapeJSON escapes as JSON's strings need it.
	EscapeJSON
	// EscapeNone writes values as they are.
	EscapeNone
)

// Line is a compiled log format.
type Line struct {
	parts  []part
	escape Escape
}

// CompileLine compiles a log format.
func (s *Scope) CompileLine(text string, escape Escape) (Line, error) {
	v, err := compile(text, s.Named)
	if err != nil {
		return Line{}, err
	}
	if v.parts == nil {
		return Line{parts: []part{{literal: v.literal}}}, nil
	}
	return Line{parts: v.parts, escape: escape}, nil
}

// Defined reports whether l was compiled.
func (l Line) Defined() bool { return l.parts != nil }

// Append appends the line for r, without a newline, to b.
func (l Line) Append(b []byte, r *Request) []byte {
	for _, p := range l.parts {
		if p.get == nil {
			b = append(b, p.literal...)
			continue
		}
		v, found := p.get(r)
		switch {
		case l.escape == EscapeJSON:
			b = appendJSON(b, v)
		case l.escape == EscapeNone:
			b = append(b, v...)
		case !found:
			b = append(b, '-')
		default:
			b = appendDefault(b, v)
		}
	}
	return b
}

const upperHex = "0123456789ABCDEF"

// appendDefault is ngx_http_log_escape.
func appendDefault(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			b = append(b, '\\', 'x', upperHex[c>>4], upperHex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

// appendJSON is AppendJSON, except that bytes that are not UTF-8 are replaced: a JSON text must
// not contain them.
func appendJSON(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return AppendJSON(b, s)
}

// AppendJSON appends the text of a JSON string (ngx_escape_json).
func AppendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, upperHex[c>>4], upperHex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}
