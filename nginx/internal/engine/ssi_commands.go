package engine

import (
	"errors"
	"io"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// fail logs why a command fails.
func (d *document) fail(why string) error {
	d.x.logError(why)
	return errCommand
}

// echo writes a variable.
func (d *document) echo(p ssiParams) error {
	value, ok := d.lookUp(p["var"])
	if d.x.failedPattern() != 0 {
		return errUnknown
	}
	if !ok {
		if value, ok = p["default"]; !ok {
			value = "(none)"
		}
	}
	if value == "" {
		return nil
	}
	if encoding, ok := p["encoding"]; ok {
		switch encoding {
		case "none", "url", "entity":
			d.encoding = encoding // for later commands, too
		default:
			d.x.logError("unknown encoding \"" + encoding + "\" in the \"echo\" command")
		}
	}
	_, err := io.WriteString(d.w, encode(value, d.encoding))
	return err
}

// config sets the text of errors, and the format of times.
func (d *document) config(p ssiParams) error {
	if format, ok := p["timefmt"]; ok {
		d.x.ssi.timefmt = &format
	}
	if text, ok := p["errmsg"]; ok {
		d.errmsg = text
	}
	return nil
}

// set sets a variable of the documents.
func (d *document) set(p ssiParams) error {
	value, err := d.evaluate(p["value"])
	if err != nil {
		return err
	}
	return d.x.ssiShared().setVariable(d.x, p["var"], value)
}

func (d *document) ifCommand(p ssiParams) error {
	if d.conditional != 0 {
		return d.fail("the \"if\" command inside the \"if\" command")
	}
	return d.elif(p)
}

func (d *document) elif(p ssiParams) error {
	if d.chosen {
		d.output = false
		return nil
	}
	holds, err := d.holds(p["expr"])
	if errors.Is(err, errUnknown) { // neither branch may be shown
		d.output, d.chosen, d.conditional = false, true, afterIf
	}
	if err != nil {
		return err
	}
	d.output, d.chosen = holds, holds
	d.conditional = afterIf
	return nil
}

func (d *document) elseCommand(ssiParams) error {
	d.output = !d.chosen
	d.conditional = afterElse
	return nil
}

func (d *document) endif(ssiParams) error {
	d.output, d.chosen, d.conditional = true, false, 0
	return nil
}

// block begins a block that a stub may show.
func (d *document) block(p ssiParams) error {
	shared := d.x.ssiShared()
	shared.blocks = append(shared.blocks, &ssiBlock{name: p["name"]})
	d.output, d.inBlock = false, true
	return nil
}

func (d *document) endblock(ssiParams) error {
	d.output, d.inBlock = true, false
	return nil
}

// holds evaluates "text", "text = text" or "text = /regex/", or the same with "!=".
func (d *document) holds(expr string) (bool, error) {
	n := 0
	for n < len(expr) && isOperand(expr[n]) {
		n++
	}
	left, err := d.evaluate(strings.ToLower(expr[:n]))
	if err != nil {
		return false, err
	}
	rest := strings.TrimLeft(expr[n:], " ")
	if rest == "" {
		return left != "", nil
	}
	right, equal := strings.CutPrefix(rest, "=")
	if !equal {
		var differs bool
		if right, differs = strings.CutPrefix(rest, "!="); !differs {
			return false, d.fail("invalid expression in \"" + expr + "\"")
		}
	}
	right = strings.TrimLeft(right, " ")
	if len(right) > 1 && right[0] == '/' {
		if right[len(right)-1] != '/' {
			return false, d.fail("invalid expression in \"" + expr + "\"")
		}
		matches, err := d.matches(left, right[1:len(right)-1])
		return matches == equal, err
	}
	if len(right) > 2 && strings.HasPrefix(right, `\/`) {
		right = right[1:]
	}
	right, err = d.evaluate(right)
	return (left == right) == equal, err
}

func isOperand(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("${}_\"'", c) >= 0
}

// matches matches a text with a regular expression, and keeps what that captures.
func (d *document) matches(text, pattern string) (bool, error) {
	pattern, err := d.evaluate(pattern)
	if err != nil {
		return false, err
	}
	re, err := pcre.Compile(pattern, false)
	if err != nil {
		return false, d.fail("pcre2_compile() failed: " + err.Error())
	}
	groups, err := re.Find(text)
	if err != nil {
		d.x.logPattern(err)
		return false, errUnknown
	}
	if groups == nil {
		return false, nil
	}
	shared := d.x.ssiShared()
	shared.captures = groups
	for i, name := range re.Names() {
		if name == "" {
			continue
		}
		if err := shared.setVariable(d.x, name, groups[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// lookUp returns a variable: one of the documents, or else of the request.
func (d *document) lookUp(name string) (string, bool) {
	shared := d.x.ssiShared()
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' && int(name[0]-'0') < len(shared.captures) {
		return shared.captures[name[0]-'0'], true
	}
	name = strings.ToLower(name)
	if v, ok := shared.variables[name]; ok {
		return v, true
	}
	if get := d.x.engine.scope.Find(name); get != nil {
		return get(&d.x.Request)
	}
	return "", false
}

// evaluate replaces the variables in a text, and removes the backslashes before what they quote.
func (d *document) evaluate(text string) (string, error) {
	var b strings.Builder
	for rest := text; rest != ""; {
		if rest[0] == '$' {
			name, after, bracket := documentVariable(rest[1:])
			switch {
			case bracket:
				return "", d.fail("the closing bracket in \"" + name + "\" variable is missing")
			case name == "":
				return "", d.fail("invalid variable name in \"" + text + "\"")
			}
			value, _ := d.lookUp(name)
			if b.Len()+len(value) > maxKept {
				_ = d.fail("too long value of \"" + text + "\"")
				return "", errUnknown
			}
			b.WriteString(value)
			rest = after
			continue
		}
		if rest[0] != '\\' || len(rest) == 1 {
			if rest[0] != '\\' { // the last one quotes nothing
				b.WriteByte(rest[0])
			}
			rest = rest[1:]
			continue
		}
		if strings.IndexByte(`\'"$`, rest[1]) < 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(rest[1])
		rest = rest[2:]
	}
	if d.x.failedPattern() != 0 {
		return "", errUnknown
	}
	return b.String(), nil
}

// documentVariable splits the name of a variable off a text. missing reports whether its closing
// bracket is.
func documentVariable(text string) (name, rest string, missing bool) {
	text, bracket := strings.CutPrefix(text, "{")
	n := 0
	for n < len(text) && (text[n] == '_' || isAlphanumeric(text[n])) {
		n++
	}
	name, rest = text[:n], text[n:]
	if bracket {
		if !strings.HasPrefix(rest, "}") {
			return name, rest, true
		}
		rest = rest[1:]
	}
	return name, rest, false
}

func isAlphanumeric(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
}

// encode encodes the value of a variable for a document.
func encode(value, encoding string) string {
	switch encoding {
	case "entity":
		return strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&quot;").Replace(value)
	case "url":
		return escapeHTML(value)
	}
	return value
}

// escapeHTML encodes what may not stand in a URI of a document (ngx_escape_uri with
// NGX_ESCAPE_HTML).
func escapeHTML(value string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"#%'<>\\^`{|}", c) >= 0 {
			b.WriteString("%" + digits[c>>4:c>>4+1] + digits[c&15:c&15+1])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
