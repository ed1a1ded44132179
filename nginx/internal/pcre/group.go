package pcre

import (
	"slices"
	"strconv"
	"strings"
)

// openGroup translates what follows a "(", up to where the content of the group begins.
func (t *translator) openGroup() error {
	rest := t.src[t.at:]
	switch {
	case strings.HasPrefix(rest, "(*"):
		return notSupported("verbs such as (*ACCEPT)")
	case !strings.HasPrefix(rest, "(?"):
		t.at++
		return t.capture("")
	}
	for _, start := range []string{"(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.HasPrefix(rest, start) {
			t.at += len(start)
			t.push()
			t.byBacktracking(start)
			return nil
		}
	}
	for start, end := range map[string]string{"(?<": ">", "(?P<": ">", "(?'": "'"} {
		if strings.HasPrefix(rest, start) {
			t.at += len(start)
			name, err := t.name(end)
			if err != nil {
				return err
			}
			return t.capture(name)
		}
	}
	return t.special(rest)
}

// special translates a "(?" that is neither a look-around nor a group with a number.
func (t *translator) special(rest string) error {
	switch {
	case strings.HasPrefix(rest, "(?#"):
		if !t.skip(")") {
			return &SyntaxError{noComment}
		}
		return nil
	case strings.HasPrefix(rest, "(?P="):
		t.at += len("(?P=")
		name, err := t.name(")")
		if err != nil {
			return err
		}
		return t.referTo(name)
	case strings.HasPrefix(rest, "(?|"):
		return notSupported("(?| with groups of equal numbers")
	case strings.HasPrefix(rest, "(?("):
		return notSupported("conditions (?(...)...)")
	case strings.HasPrefix(rest, "(?C"):
		return notSupported("callouts (?C)")
	case recurses(rest[2:]):
		return notSupported("recursion")
	}
	return t.setOptions()
}

// recurses reports whether a "(?" begins a call of a group.
func recurses(rest string) bool {
	if strings.HasPrefix(rest, "P>") || strings.HasPrefix(rest, "&") || strings.HasPrefix(rest, "R") {
		return true
	}
	rest = strings.TrimLeft(rest, "+-")
	return rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// push opens a group.
func (t *translator) push() {
	t.open = append(t.open, group{t.mark(), t.options})
	t.repeat = false
}

// capture opens a group with a number, and perhaps a name.
func (t *translator) capture(name string) error {
	if name != "" && slices.Contains(t.names, name) {
		return &SyntaxError{twoNames}
	}
	t.names = append(t.names, name)
	t.push()
	t.both("(")
	return nil
}

func (t *translator) closeGroup() error {
	t.at++
	last := len(t.open) - 1
	if last < 0 {
		return &SyntaxError{extraParen}
	}
	t.both(")")
	t.atom, t.repeat, t.options = t.open[last].start, true, t.open[last].before
	t.open = t.open[:last]
	return nil
}

// name reads the name of a group, up to end.
func (t *translator) name(end string) (string, error) {
	rest := t.src[t.at:]
	n := 0
	for n < len(rest) && isWord(rest[n]) {
		n++
	}
	switch {
	case n == 0 || rest[0] >= '0' && rest[0] <= '9':
		return "", &SyntaxError{badName}
	case !strings.HasPrefix(rest[n:], end):
		return "", &SyntaxError{unclosedName}
	}
	t.at += n + len(end)
	return rest[:n], nil
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// referTo adds a back reference to a named group.
func (t *translator) referTo(name string) error {
	i := slices.Index(t.names, name)
	if i < 1 {
		return &SyntaxError{noGroup}
	}
	return t.refer(i)
}

// refer adds a back reference to a group, which must stand in front of it.
func (t *translator) refer(n int) error {
	if n < 1 || n >= len(t.names) {
		return &SyntaxError{noGroup}
	}
	t.begin()
	t.byBacktracking(`\k<` + strconv.Itoa(n) + `>`)
	return nil
}

// setOptions translates "(?flags)" and "(?flags:".
func (t *translator) setOptions() error {
	rest := t.src[t.at+2:]
	end := strings.IndexAny(rest, ":)")
	if end < 0 {
		return &SyntaxError{badGroup}
	}
	after := t.options
	flags, err := after.set(rest[:end])
	if err != nil {
		return err
	}
	t.at += 2 + end + 1
	if rest[end] == ')' {
		t.options, t.repeat = after, false
		if flags != "" {
			t.both("(?" + flags + ")")
		}
		return nil
	}
	t.push()
	t.options = after
	t.both("(?" + flags + ":")
	return nil
}

// set sets options, and returns those that both libraries understand.
func (o *options) set(text string) (flags string, err error) {
	on := true
	if rest, reset := strings.CutPrefix(text, "^"); reset {
		*o, flags, text = options{}, "-ims", rest
	}
	var set, unset string
	for _, c := range text {
		switch c {
		case '-':
			on = false
		case 'x':
			o.extended = on
		case 'U':
			o.lazy = on
		case 'i', 's', 'm':
			if c == 'm' {
				o.multiline = on
			}
			if on {
				set += string(c)
			} else {
				unset += string(c)
			}
		case 'J', 'n':
			return "", notSupported("option (?" + string(c) + ")")
		default:
			return "", &SyntaxError{badGroup}
		}
	}
	if flags != "" { // after "^" options can only be set
		for _, c := range set {
			flags = strings.ReplaceAll(flags, string(c), "")
		}
		return set + strings.TrimSuffix(flags, "-"), nil
	}
	if unset != "" {
		set += "-" + unset
	}
	return set, nil
}
