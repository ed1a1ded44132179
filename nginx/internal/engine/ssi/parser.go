// Package ssi finds the commands of server-side includes in a stream, and has their notation of
// times (ngx_http_ssi_filter_module.c).
package ssi

import "fmt"

const (
	// MaxName bounds the name of a command, and of a parameter.
	MaxName = 32
	// MaxParams bounds the parameters of a command.
	MaxParams = 16
)

// Command is one command: <!--#name key="value" ... -->.
type Command struct {
	Name   string
	Params []Param
}

// Param is a parameter of a command. Backslashes in the value are kept.
type Param struct{ Key, Value string }

// Handler is called with the parts of a document, in order. An error ends the document.
type Handler interface {
	// Text receives a piece of what is not a command.
	Text(p []byte) error
	// Command receives a command.
	Command(c *Command) error
	// Malformed is called at the end of a command that is malformed; why is its first error.
	Malformed(why string) error
}

// Parser splits what is written to it. It buffers no more than one command.
type Parser struct {
	h        Handler
	maxValue int
	state    func(*Parser, byte)
	matched  int // bytes of the opening
	command  Command
	name     []byte // of the command or the parameter
	value    []byte
	quote    byte
	escaped  bool
	why      string // the first error of the command
	done     bool   // the command is complete
}

// opening begins a command.
const opening = "<!--#"

// NewParser returns a Parser that calls h. Values are bounded to maxValue bytes.
func NewParser(h Handler, maxValue int) *Parser { return &Parser{h: h, maxValue: maxValue} }

// Write parses p. It returns the first error of the handler.
func (s *Parser) Write(p []byte) (int, error) {
	start := 0 // of the text that is not passed on
	for i, c := range p {
		if s.state == nil {
			if begun := s.matched; !s.match(c) && begun > 0 && i < begun {
				if err := s.passMatched(begun - i); err != nil { // it was no command
					return 0, err
				}
			}
			if s.matched == len(opening) {
				if err := s.text(p[start:max(start, i+1-len(opening))]); err != nil {
					return 0, err
				}
				s.begin()
			}
			continue
		}
		if s.state(s, c); !s.done {
			continue
		}
		start = i + 1
		if err := s.finish(); err != nil {
			return 0, err
		}
	}
	if s.state != nil {
		return len(p), nil
	}
	return len(p), s.text(p[start:max(start, len(p)-s.matched)])
}

// match advances in the opening, and reports whether c continues it.
func (s *Parser) match(c byte) bool {
	if c == opening[s.matched] {
		s.matched++
		return true
	}
	s.matched = 0
	if c == opening[0] {
		s.matched = 1
	}
	return false
}

// passMatched passes on a part of an opening that earlier calls have received.
func (s *Parser) passMatched(n int) error { return s.text([]byte(opening[:n])) }

func (s *Parser) text(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return s.h.Text(p)
}

func (s *Parser) begin() {
	s.state, s.matched, s.why, s.done = beforeName, 0, "", false
	s.command, s.name = Command{}, nil
}

// finish passes on a command.
func (s *Parser) finish() error {
	s.state = nil
	if s.why != "" {
		return s.h.Malformed(s.why)
	}
	c := s.command
	return s.h.Command(&c)
}

// Close passes on the beginning of an opening at the end of the document. A command without its
// end is dropped.
func (s *Parser) Close() error {
	if s.state != nil {
		return nil
	}
	n := s.matched
	s.matched = 0
	return s.passMatched(n)
}

func (s *Parser) fail(format string, args ...any) {
	if s.why == "" {
		s.why = fmt.Sprintf(format, args...)
	}
	s.state = malformed
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func beforeName(s *Parser, c byte) {
	if !isSpace(c) {
		s.name, s.state = []byte{c}, inName
	}
}

func inName(s *Parser, c byte) {
	switch {
	case isSpace(c) || c == '-':
		s.command.Name = string(s.name)
		if s.state = beforeKey; c == '-' {
			s.state = dash
		}
	case len(s.name) == MaxName:
		s.fail("the \"%s%c...\" SSI command is too long", s.name, c)
	default:
		s.name = append(s.name, c)
	}
}

func beforeKey(s *Parser, c byte) {
	switch {
	case isSpace(c):
	case c == '-':
		s.state = dash
	case len(s.command.Params) == MaxParams:
		s.fail("too many SSI command parameters: \"%s\"", s.command.Name)
	default:
		s.name, s.state = []byte{c}, inKey
	}
}

func inKey(s *Parser, c byte) {
	switch {
	case isSpace(c):
		s.state = behindKey
	case c == '=':
		s.state = beforeValue
	case c == '-':
		s.unexpected(c, "after \"%s\" parameter in \"%s\" SSI command")
	case len(s.name) == MaxName:
		s.fail("too long \"%s%c...\" parameter in \"%s\" SSI command", s.name, c, s.command.Name)
	default:
		s.name = append(s.name, c)
	}
}

// unexpected fails at c, which may begin the end of the command.
func (s *Parser) unexpected(c byte, where string) {
	s.fail("unexpected \"%c\" symbol "+where, c, s.name, s.command.Name)
	if c == '-' {
		s.state = malformedDash
	}
}

func behindKey(s *Parser, c byte) {
	switch {
	case isSpace(c):
	case c == '=':
		s.state = beforeValue
	default:
		s.unexpected(c, "after \"%s\" parameter in \"%s\" SSI command")
	}
}

func beforeValue(s *Parser, c byte) {
	switch {
	case isSpace(c):
	case c == '"' || c == '\'':
		s.quote, s.value, s.escaped, s.state = c, s.value[:0], false, inValue
	default:
		s.unexpected(c, "before value of \"%s\" parameter in \"%s\" SSI command")
	}
}

func inValue(s *Parser, c byte) {
	switch {
	case c == s.quote && !s.escaped:
		s.command.Params = append(s.command.Params, Param{string(s.name), string(s.value)})
		s.state = behindValue
	case len(s.value) == s.maxValue:
		s.fail("too long \"%s%c...\" value of \"%s\" parameter in \"%s\" SSI command", s.value, c, s.name, s.command.Name)
	default:
		s.escaped = c == '\\' && !s.escaped
		s.value = append(s.value, c)
	}
}

func behindValue(s *Parser, c byte) {
	switch {
	case isSpace(c):
		s.state = beforeKey
	case c == '-':
		s.state = dash
	default:
		s.fail("unexpected \"%c\" symbol after \"%s\" value of \"%s\" parameter in \"%s\" SSI command", c, s.value, s.name, s.command.Name)
	}
}

func dash(s *Parser, c byte) {
	if c == '-' {
		s.state = twoDashes
		return
	}
	s.fail("unexpected \"%c\" symbol in \"%s\" SSI command", c, s.command.Name)
}

func twoDashes(s *Parser, c byte) {
	if c == '>' {
		s.done = true
		return
	}
	s.fail("unexpected \"%c\" symbol in \"%s\" SSI command", c, s.command.Name)
}

// malformed looks for the end of a command that is malformed.
func malformed(s *Parser, c byte) {
	if c == '-' {
		s.state = malformedDash
	}
}

func malformedDash(s *Parser, c byte) {
	if s.state = malformed; c == '-' {
		s.state = malformedTwo
	}
}

func malformedTwo(s *Parser, c byte) {
	switch c {
	case '>':
		s.done = true
	default:
		s.state = malformed
	}
}
