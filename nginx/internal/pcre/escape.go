package pcre

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape translates a backslash outside of a class, and what follows it.
func (t *translator) escape() error {
	if t.at+1 == len(t.src) {
		return &SyntaxError{trailing}
	}
	c := t.src[t.at+1]
	switch c {
	case 'A', 'z', 'b', 'B', 'd', 'D', 'w', 'W':
		return t.simple(`\`+string(rune(c)), `\`+string(rune(c)))
	case 'G': // a match begins at the start of the text
		return t.simple(`\A`, `\A`)
	case 'Z':
		t.at += 2
		t.begin()
		t.endOfText()
		return nil
	case 's', 'S', 'h', 'H', 'v', 'V':
		t.at += 2
		t.begin()
		t.both("[" + asciiSets[lower(c)].text(c < 'a') + "]")
		return nil
	case 'N':
		if strings.HasPrefix(t.src[t.at:], `\N{`) {
			return &SyntaxError{`PCRE2 does not support \F, \L, \l, \N{name}, \U, or \u`}
		}
		return t.simple(`[^\n]`, `[^\n]`)
	case 'C':
		return t.simple(`(?s:.)`, `(?s:.)`)
	case 'R':
		t.at += 2
		t.begin()
		t.byBacktracking(`(?>\r\n|[\n-\r])`)
		return nil
	case 'K': // the match begins here, which is of no consequence: nginx uses groups alone
		t.at, t.repeat = t.at+2, false
		return nil
	case 'X':
		return notSupported(`\X`)
	case 'p', 'P':
		text, err := t.property()
		t.begin()
		t.both(text)
		return err
	case 'Q':
		t.quote()
		return nil
	case 'E':
		t.at += 2
		return nil
	case 'k', 'g':
		return t.namedReference()
	}
	if n, length := t.numberedReference(); length > 0 {
		t.at += length
		return t.refer(n)
	}
	b, err := t.byteEscape()
	if err != nil {
		return err
	}
	t.begin()
	t.character(b)
	return nil
}

// simple translates an escape of two characters.
func (t *translator) simple(lin, back string) error {
	t.at += 2
	t.begin()
	t.texts(lin, back)
	return nil
}

func lower(c byte) byte { return c | 0x20 }

// property reads a Unicode property, which both libraries have.
func (t *translator) property() (text string, err error) {
	rest := t.src[t.at+2:]
	n := 1
	if strings.HasPrefix(rest, "{") {
		n = strings.IndexByte(rest, '}') + 1
	}
	if n == 0 || n > len(rest) || rest[0] >= utf8.RuneSelf {
		return "", &SyntaxError{`malformed \P or \p sequence`}
	}
	text = t.src[t.at : t.at+2+n]
	t.at += len(text)
	return text, nil
}

// quote translates the literal text between \Q and \E.
func (t *translator) quote() {
	t.at += 2
	end := len(t.src)
	if i := strings.Index(t.src[t.at:], `\E`); i >= 0 {
		end = t.at + i
	}
	for t.at < end {
		t.literal()
	}
	t.at = min(end+2, len(t.src))
}

// namedReference translates \k and \g.
func (t *translator) namedReference() error {
	isG := t.src[t.at+1] == 'g'
	t.at += 2
	rest := t.src[t.at:]
	for start, end := range map[string]string{"{": "}", "<": ">", "'": "'"} {
		if !strings.HasPrefix(rest, start) {
			continue
		}
		if isG && start != "{" {
			return notSupported("recursion")
		}
		t.at++
		if n, length := t.relative(t.src[t.at:]); isG && length > 0 && strings.HasPrefix(t.src[t.at+length:], end) {
			t.at += length + len(end)
			return t.refer(n)
		}
		name, err := t.name(end)
		if err != nil {
			return err
		}
		return t.referTo(name)
	}
	if n, length := t.relative(rest); isG && length > 0 {
		t.at += length
		return t.refer(n)
	}
	return &SyntaxError{noGroup}
}

// relative parses the number of a group, or how many groups lie between it and here; length is 0 if there is none.
func (t *translator) relative(s string) (n, length int) {
	digits, back := strings.CutPrefix(s, "-")
	count := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	n, err := strconv.Atoi(digits[:count])
	switch {
	case count == 0 || err != nil:
		return 0, 0
	case back:
		return len(t.names) - n, count + 1
	}
	return n, count
}

// numberedReference parses a backslash with a number that is a reference; length is 0 if it is a byte.
func (t *translator) numberedReference() (n, length int) {
	rest := t.src[t.at+1:]
	count := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if count == 0 || rest[0] == '0' {
		return 0, 0
	}
	n, err := strconv.Atoi(rest[:count])
	if err == nil && (n < 10 || rest[0] >= '8' || n < len(t.names)) {
		return n, count + 1
	}
	return 0, 0
}

// byteEscape parses a backslash that stands for one byte.
func (t *translator) byteEscape() (byte, error) {
	c := t.src[t.at+1]
	t.at += 2
	switch c {
	case 'a':
		return 7, nil
	case 'e':
		return 0x1b, nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'c':
		if t.at == len(t.src) || t.src[t.at] < ' ' || t.src[t.at] > '~' {
			return 0, &SyntaxError{`\c must be followed by a printable ASCII character`}
		}
		t.at++
		return strings.ToUpper(t.src[t.at-1 : t.at])[0] ^ 64, nil
	case 'x':
		return t.coded(16, 2)
	case 'o':
		if !strings.HasPrefix(t.src[t.at:], "{") {
			return 0, &SyntaxError{`missing opening brace after \o`}
		}
		return t.coded(8, 0)
	}
	switch {
	case c >= '0' && c <= '7':
		t.at--
		return t.coded(8, 3)
	case c < utf8.RuneSelf && isWord(c) && c != '_':
		return 0, &SyntaxError{badEscape}
	}
	return c, nil
}

// coded parses a number in braces, or one of at most max digits.
func (t *translator) coded(base, max int) (byte, error) {
	rest := t.src[t.at:]
	digits, braces := rest, base == 16 || max == 0
	if braces = braces && strings.HasPrefix(rest, "{"); braces {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return 0, &SyntaxError{`missing terminating } or invalid digits in \x{} or \o{}`}
		}
		digits = rest[1:end]
		t.at += end + 1
	} else {
		n := 0
		for n < min(len(rest), max) && isDigit(rest[n], base) {
			n++
		}
		digits = rest[:n]
		if t.at += n; n == 0 {
			return 0, nil // a single \x
		}
	}
	n, err := strconv.ParseUint(digits, base, 32)
	switch {
	case err != nil && braces:
		return 0, &SyntaxError{`non-hex or non-octal character in \x{} or \o{} (closing brace missing?)`}
	case err != nil || n > 0xff:
		return 0, &SyntaxError{bigValue}
	}
	return byte(n), nil
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(rune(c)), base, 8)
	return c < utf8.RuneSelf && c != '_' && err == nil
}
