package pcre

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The texts of PCRE's errors.
const (
	badEscape    = "unrecognized character follows \\"
	trailing     = "\\ at end of pattern"
	badRange     = "range out of order in character class"
	noBracket    = "missing terminating ] for character class"
	noParen      = "missing closing parenthesis"
	extraParen   = "unmatched closing parenthesis"
	noRepeat     = "quantifier does not follow a repeatable item"
	badRepeat    = "numbers out of order in {} quantifier"
	bigRepeat    = "number too big in {} quantifier"
	badGroup     = "unrecognized character after (? or (?-"
	badName      = "subpattern name expected"
	unclosedName = "syntax error in subpattern name (missing terminator?)"
	twoNames     = "two named subpatterns have the same name (PCRE2_DUPNAMES not set)"
	noGroup      = "reference to non-existent subpattern"
	noComment    = "missing ) after (?# comment"
	bigValue     = "character code point value in \\x{} or \\o{} is too large"
	badClassName = "unknown POSIX class name"
	collating    = "POSIX collating elements are not supported"
	inClass      = "escape sequence is invalid in character class"
)

// lineEnd stands in the linear text for a "$" or a \Z, which a pattern's own zero bytes do not: they are escaped.
const lineEnd = "\x00"

// translator translates a pattern into the syntaxes of both libraries at once.
type translator struct {
	src string // the pattern
	at  int    // what is next

	lin, back  []byte   // for package regexp, for the library that backtracks
	backtracks bool     // lin does not mean the same
	endsLine   bool     // lin contains lineEnd
	names      []string // of the groups

	atom   mark // where what a quantifier would repeat begins
	repeat bool // there is something to repeat
	open   []group
	options
}

// options are those of PCRE's that the translation follows; others are passed on.
type options struct {
	extended  bool // (?x)
	lazy      bool // (?U)
	multiline bool // (?m)
}

// group is a parenthesis that is open.
type group struct {
	start  mark
	before options
}

// mark is a place in both translations.
type mark struct{ lin, back int }

func translate(text string) (*translator, error) {
	t := &translator{src: text, names: []string{""}}
	t.skipVerbs()
	for t.at < len(t.src) {
		if err := t.item(); err != nil {
			return nil, err
		}
	}
	if len(t.open) > 0 {
		return nil, &SyntaxError{noParen}
	}
	return t, nil
}

// plain returns the pattern for package regexp, and withNewline that for texts that end in a line feed.
func (t *translator) plain() string { return strings.ReplaceAll(string(t.lin), lineEnd, `\z`) }

func (t *translator) withNewline() string {
	return strings.ReplaceAll(string(t.lin), lineEnd, `(?:\n?\z)`)
}

// skipVerbs skips the settings at the beginning that do not concern what matches. Texts of UTF-8 are what package regexp takes.
func (t *translator) skipVerbs() {
	for {
		rest := t.src[t.at:]
		end := strings.IndexByte(rest, ')')
		if !strings.HasPrefix(rest, "(*") || end < 0 || !slices.Contains([]string{"UTF", "UTF8", "NO_AUTO_POSSESS", "NO_JIT", "NO_START_OPT"}, rest[2:end]) {
			return
		}
		t.at += end + 1
	}
}

// item translates what is next: a character, a class, a quantifier, a parenthesis.
func (t *translator) item() error {
	c := t.src[t.at]
	switch {
	case t.extended && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
		t.at++
		return nil
	case t.extended && c == '#':
		t.skip("\n")
		return nil
	}
	switch c {
	case '\\':
		return t.escape()
	case '[':
		return t.class()
	case '(':
		return t.openGroup()
	case ')':
		return t.closeGroup()
	case '*', '+', '?':
		t.at++
		return t.quantifier(string(c))
	case '{':
		if text, n := counts(t.src[t.at:]); n > 0 {
			t.at += n
			return t.quantifier(text)
		}
		t.literal()
	case '|':
		t.at++
		t.both("|")
		t.repeat = false
	case '$':
		t.at++
		t.dollar()
	case '^', '.':
		t.at++
		t.begin()
		t.both(string(c))
	default:
		t.literal()
	}
	return nil
}

// skip skips everything up to the end of the next end. It reports false if there is none.
func (t *translator) skip(end string) bool {
	i := strings.Index(t.src[t.at:], end)
	if i < 0 {
		t.at = len(t.src)
		return false
	}
	t.at += i + len(end)
	return true
}

// begin begins what a quantifier behind it repeats.
func (t *translator) begin() { t.atom, t.repeat = t.mark(), true }

func (t *translator) mark() mark { return mark{len(t.lin), len(t.back)} }

// both adds a text that both libraries understand alike.
func (t *translator) both(text string) { t.texts(text, text) }

func (t *translator) texts(lin, back string) {
	t.lin, t.back = append(t.lin, lin...), append(t.back, back...)
}

// byBacktracking adds a text that only the library which backtracks understands.
func (t *translator) byBacktracking(text string) {
	t.backtracks = true
	t.back = append(t.back, text...)
}

// literal translates the character that is next. In PCRE each byte is one, so that a quantifier repeats the last.
func (t *translator) literal() {
	r, n := utf8.DecodeRuneInString(t.src[t.at:])
	t.begin()
	switch {
	case r < utf8.RuneSelf:
		t.character(byte(r))
	case r == utf8.RuneError && n == 1:
		t.character(t.src[t.at])
	default:
		t.lin = append(t.lin, t.src[t.at:t.at+n]...)
		for i := range n {
			t.atom.back = len(t.back)
			t.back = utf8.AppendRune(t.back, unit(t.src[t.at+i]))
		}
	}
	t.at += n
}

// character adds a character that matches a byte. Package regexp has none for a byte that is not ASCII.
func (t *translator) character(b byte) {
	if b < utf8.RuneSelf {
		t.both(quoted(b))
		return
	}
	t.byBacktracking(string(unit(b)))
}

// quoted returns a byte of ASCII as it stands in both syntaxes.
func quoted(b byte) string {
	switch {
	case b < ' ' || b == 0x7f:
		return `\x` + hex(b)
	case strings.IndexByte(`\.+*?()|[]{}^$`, b) >= 0:
		return `\` + string(rune(b))
	}
	return string(rune(b))
}

func hex(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// dollar adds the end of the text, in front of its last line feed, too.
func (t *translator) dollar() {
	t.begin()
	if t.multiline {
		t.both("$")
		return
	}
	t.endOfText()
}

func (t *translator) endOfText() {
	t.endsLine = true
	t.texts(lineEnd, `\Z`)
}

// counts parses "{n}", "{n,}" or "{n,m}" at the start of s, and returns its length; 0 if it is none of them, but a brace.
func counts(s string) (text string, n int) {
	end := strings.IndexByte(s, '}')
	if end < 2 {
		return "", 0
	}
	low, high, ranged := strings.Cut(s[1:end], ",")
	if low == "" || strings.Trim(low, "0123456789") != "" || ranged && strings.Trim(high, "0123456789") != "" {
		return "", 0
	}
	return s[:end+1], end + 1
}

// maxRepeat is PCRE's.
const maxRepeat = 65535

// checkCounts returns PCRE's error for the numbers of a quantifier.
func checkCounts(text string) error {
	if text[0] != '{' {
		return nil
	}
	low, high, _ := strings.Cut(strings.Trim(text, "{}"), ",")
	from, err := strconv.Atoi(low)
	if err != nil || from > maxRepeat {
		return &SyntaxError{bigRepeat}
	}
	if high == "" {
		return nil
	}
	to, err := strconv.Atoi(high)
	switch {
	case err != nil || to > maxRepeat:
		return &SyntaxError{bigRepeat}
	case to < from:
		return &SyntaxError{badRepeat}
	}
	return nil
}

// quantifier adds a quantifier, with the "?" or the "+" behind it.
func (t *translator) quantifier(text string) error {
	if !t.repeat {
		return &SyntaxError{noRepeat}
	}
	if err := checkCounts(text); err != nil {
		return err
	}
	t.repeat = false
	next := byte(0)
	if t.at < len(t.src) {
		next = t.src[t.at]
	}
	if next == '+' { // possessive
		t.at++
		t.backtracks = true
		t.back = slices.Insert(t.back, t.atom.back, []byte("(?>")...)
		t.texts(text, text+")")
		return nil
	}
	lazy := t.lazy
	if next == '?' {
		t.at++
		lazy = !lazy
	}
	if lazy {
		text += "?"
	}
	t.both(text)
	return nil
}

// notSupported is the error of a valid pattern.
func notSupported(what string) error { return errors.New(what) }
