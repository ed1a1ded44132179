package vars

import (
	"errors"
	"fmt"
	"strings"
)

// Getter evaluates one variable. found is false for a variable that exists and has no value,
// which a log writes as "-".
type Getter func(r *Request) (value string, found bool)

// Value is a text with variables, compiled. The zero Value is the empty text.
type Value struct {
	literal string // of a constant Value
	parts   []part
}

// part is a literal, or a variable if get is not nil.
type part struct {
	literal string
	get     Getter
}

// Constant returns a Value without variables.
func Constant(s string) Value { return Value{literal: s} }

// Literal returns the text of a Value without variables.
func (v Value) Literal() (text string, constant bool) {
	return v.literal, v.parts == nil
}

// String evaluates v for r.
func (v Value) String(r *Request) string {
	switch len(v.parts) {
	case 0:
		return v.literal
	case 1:
		return v.parts[0].string(r)
	}
	var b strings.Builder
	for _, p := range v.parts {
		b.WriteString(p.string(r))
	}
	return b.String()
}

func (p part) string(r *Request) string {
	if p.get == nil {
		return p.literal
	}
	s, _ := p.get(r)
	return s
}

// Compile compiles text. Its errors are nginx's: an unknown variable, an invalid name, a missing
// bracket.
func (s *Scope) Compile(text string) (Value, error) { return compile(text, s.Lookup) }

// compile compiles text with the variables that lookup finds.
func compile(text string, lookup func(name string) (Getter, error)) (Value, error) {
	pieces, err := split(text)
	if err != nil {
		return Value{}, err
	}
	var v Value
	for _, p := range pieces {
		if p.name == "" {
			v.parts = append(v.parts, part{literal: p.literal})
			continue
		}
		get, err := lookup(p.name)
		if err != nil {
			return Value{}, err
		}
		v.parts = append(v.parts, part{get: get})
	}
	if len(pieces) == 0 || len(pieces) == 1 && pieces[0].name == "" {
		return Constant(text), nil
	}
	return v, nil
}

// piece is a literal, or a variable if name is not empty.
type piece struct{ literal, name string }

// split splits text at its variables (ngx_http_script_compile).
func split(text string) ([]piece, error) {
	var pieces []piece
	for rest := text; rest != ""; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			return append(pieces, piece{literal: rest}), nil
		}
		if i > 0 {
			pieces = append(pieces, piece{literal: rest[:i]})
		}
		name, after, err := variableName(rest[i+1:])
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, errors.New("invalid variable name")
		}
		pieces, rest = append(pieces, piece{name: name}), after
	}
	return pieces, nil
}

// variableName parses the name behind a dollar sign. One digit is a name of its own: $10 is $1
// and a zero.
func variableName(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, "{") {
		end := nameLen(s[1:])
		if end+1 >= len(s) || s[end+1] != '}' {
			return "", "", fmt.Errorf("the closing bracket in \"%s\" variable is missing", s[1:1+end])
		}
		return s[1 : 1+end], s[2+end:], nil
	}
	end := nameLen(s)
	if end > 0 && s[0] >= '1' && s[0] <= '9' {
		end = 1
	}
	return s[:end], s[end:], nil
}

func nameLen(s string) int {
	n := 0
	for n < len(s) {
		c := s[n]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		n++
	}
	return n
}
