package pcre

import (
	"strings"
	"unicode/utf8"
)

// asciiSet is a set of bytes of ASCII: pairs of the first and the last of a range, in order.
type asciiSet string

// asciiSets are what escapes stand for.
var asciiSets = map[byte]asciiSet{'d': "09", 'w': "09AZ__az", 's': "\t\r  ", 'h': "\t\t  ", 'v': "\n\r"}

// posixSets are the classes of POSIX.
var posixSets = map[string]asciiSet{
	"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "word": "09AZ__az", "xdigit": "09AFaf",
}

// beyond is the range of what is not ASCII, in a class of either library.
const beyond = "\u0080-\U0010ffff"

// text returns the set as it stands in a class, or what is not in it.
func (s asciiSet) text(complement bool) string {
	if !complement {
		text := ""
		for i := 0; i < len(s); i += 2 {
			text += rangeText(s[i], s[i+1])
		}
		return text
	}
	text, next := "", byte(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			text += rangeText(next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next < utf8.RuneSelf {
		text += rangeText(next, utf8.RuneSelf-1)
	}
	return text + beyond
}

func rangeText(from, to byte) string {
	if from == to {
		return inClassText(from)
	}
	return inClassText(from) + "-" + inClassText(to)
}

// inClassText returns a byte of ASCII as it stands in a class of either library.
func inClassText(b byte) string {
	if isWord(b) && b != '_' {
		return string(rune(b))
	}
	return `\x` + hex(b)
}

// member is an item of a class: a character, or a set as text if it has none.
type member struct {
	char  rune   // for package regexp, which matches UTF-8; -1: there is none
	bytes string // of char, each of which is a character in PCRE
	set   string
}

// class translates a class. Its "[" is next.
func (t *translator) class() error {
	t.begin()
	t.at++
	t.both("[")
	if strings.HasPrefix(t.src[t.at:], "^") {
		t.at++
		t.both("^")
	}
	for first := true; first || !strings.HasPrefix(t.src[t.at:], "]"); first = false {
		if err := t.members(); err != nil {
			return err
		}
		if t.at >= len(t.src) {
			return &SyntaxError{noBracket}
		}
	}
	t.at++
	t.both("]")
	return nil
}

// members translates a member of a class, or a range of them.
func (t *translator) members() error {
	from, err := t.member()
	if err != nil {
		return err
	}
	rest := t.src[t.at:]
	if from.bytes == "" || len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		t.add(from)
		return nil
	}
	t.at++
	to, err := t.member()
	if err != nil {
		return err
	}
	if to.bytes == "" { // the hyphen is one
		t.add(from)
		t.add(member{char: '-', bytes: "-"})
		t.add(to)
		return nil
	}
	return t.addRange(from, to)
}

// add adds a member to both translations.
func (t *translator) add(m member) {
	t.both(m.set)
	if m.bytes == "" {
		return
	}
	t.linear(m)
	for i := range len(m.bytes) {
		t.back = append(t.back, unitInClass(m.bytes[i])...)
	}
}

// linear adds a character for package regexp, which has none for a byte that is not ASCII.
func (t *translator) linear(m member) {
	switch {
	case m.char < 0:
		t.backtracks = true
	case m.char < utf8.RuneSelf:
		t.lin = append(t.lin, inClassText(byte(m.char))...)
	default:
		t.lin = utf8.AppendRune(t.lin, m.char)
	}
}

func unitInClass(b byte) string {
	if b < utf8.RuneSelf {
		return inClassText(b)
	}
	return string(unit(b))
}

// addRange adds a range. Of characters that are several bytes PCRE has the range between the last and the first byte.
func (t *translator) addRange(from, to member) error {
	last, rest := len(from.bytes)-1, to.bytes[1:]
	low, high := from.bytes[last], to.bytes[0]
	if len(from.bytes) == 1 && len(to.bytes) == 1 && low > high || from.char > to.char && to.char >= 0 {
		return &SyntaxError{badRange}
	}
	t.linear(from)
	t.lin = append(t.lin, '-')
	t.linear(to)
	for i := range last {
		t.back = append(t.back, unitInClass(from.bytes[i])...)
	}
	if low <= high {
		t.back = append(t.back, unitInClass(low)+"-"+unitInClass(high)...)
	} else { // not in PCRE
		t.back = append(t.back, unitInClass(low)+unitInClass(high)...)
	}
	for i := range len(rest) {
		t.back = append(t.back, unitInClass(rest[i])...)
	}
	return nil
}

// member reads a member of a class. It has neither a character nor a set for what stands for nothing.
func (t *translator) member() (member, error) {
	rest := t.src[t.at:]
	switch {
	case rest == "":
		return member{}, &SyntaxError{noBracket}
	case strings.HasPrefix(rest, `\Q`):
		return t.quotedMember()
	case rest[0] == '\\':
		return t.escapedMember()
	case strings.HasPrefix(rest, "[:"), strings.HasPrefix(rest, "[."), strings.HasPrefix(rest, "[="):
		if m, ok, err := t.posixMember(); ok || err != nil {
			return m, err
		}
	}
	return t.plainMember(), nil
}

// plainMember reads a character.
func (t *translator) plainMember() member {
	r, n := utf8.DecodeRuneInString(t.src[t.at:])
	if r == utf8.RuneError && n == 1 {
		r = -1
	}
	m := member{char: r, bytes: t.src[t.at : t.at+n]}
	t.at += n
	return m
}

// quotedMember reads the literal text between \Q and \E as a set.
func (t *translator) quotedMember() (m member, err error) {
	t.at += 2
	end := strings.Index(t.src[t.at:], `\E`)
	if end < 0 {
		return m, &SyntaxError{noBracket}
	}
	for end += t.at; t.at < end; {
		t.add(t.plainMember())
	}
	t.at = end + 2
	return m, nil
}

// posixMember reads a class of POSIX. ok is false if it is none.
func (t *translator) posixMember() (m member, ok bool, err error) {
	kind := t.src[t.at+1]
	name, _, closed := strings.Cut(t.src[t.at+2:], string(rune(kind))+"]")
	if !closed || strings.ContainsAny(name, `\[]`) {
		return m, false, nil
	}
	if kind != ':' {
		return m, false, &SyntaxError{collating}
	}
	t.at += 2 + len(name) + 2
	positive, complement := strings.CutPrefix(name, "^")
	set, ok := posixSets[positive]
	if !ok {
		return m, false, &SyntaxError{badClassName}
	}
	return member{set: set.text(complement)}, true, nil
}

// escapedMember reads a backslash and what follows it.
func (t *translator) escapedMember() (m member, err error) {
	if t.at+1 == len(t.src) {
		return m, &SyntaxError{trailing}
	}
	c := t.src[t.at+1]
	switch c {
	case 'd', 'w', 's', 'h', 'v', 'D', 'W', 'S', 'H', 'V':
		t.at += 2
		return member{set: asciiSets[lower(c)].text(c < 'a')}, nil
	case 'b':
		t.at += 2
		return member{char: '\b', bytes: "\b"}, nil
	case 'B', 'R', 'X', 'N':
		return m, &SyntaxError{inClass}
	case 'E':
		t.at += 2
		return m, nil
	case 'p', 'P':
		m.set, err = t.property()
		return m, err
	case '8', '9':
		t.at += 2
		return member{char: rune(c), bytes: string(rune(c))}, nil
	}
	if c >= '1' && c <= '7' {
		t.at++
		b, err := t.coded(8, 3)
		return byteMember(b), err
	}
	b, err := t.byteEscape()
	return byteMember(b), err
}

// byteMember returns a member that is a byte.
func byteMember(b byte) member {
	m := member{char: -1, bytes: string([]byte{b})}
	if b < utf8.RuneSelf {
		m.char = rune(b)
	}
	return m
}
