package engine

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/ssi"
)

// document is one whose commands are run.
type document struct {
	*ssi.Parser
	x      *exchange
	s      *ssiSettings
	w      io.Writer
	errmsg string // of config

	output      bool // text is written, and not skipped or kept in a block
	chosen      bool // a branch of the if has been written
	conditional int  // the kind of the last command of an if; 0: there is none around
	inBlock     bool
	encoding    string // of echo
}

func newDocument(x *exchange, s *ssiSettings, w io.Writer) *document {
	d := &document{x: x, s: s, w: w, output: true, encoding: "entity", errmsg: "[an error occurred while processing the directive]"}
	d.Parser = ssi.NewParser(d, int(s.valueLength))
	return d
}

// Flush is for streams. The beginning of a command is kept.
func (d *document) Flush() error { return nil }

// Text implements ssi.Handler.
func (d *document) Text(p []byte) error {
	switch {
	case d.output:
		_, err := d.w.Write(p)
		return err
	case d.inBlock:
		return d.keep(p)
	}
	return nil
}

// keep appends to the block that has begun last.
func (d *document) keep(p []byte) error {
	shared := d.x.ssiShared()
	if err := shared.grow(d.x, len(p)); err != nil {
		return err
	}
	b := shared.blocks[len(shared.blocks)-1]
	b.text = append(b.text, p...)
	return nil
}

// Malformed implements ssi.Handler.
func (d *document) Malformed(why string) error {
	d.x.logError(why)
	return d.showError()
}

func (d *document) showError() error {
	if d.s.silent {
		return nil
	}
	_, err := io.WriteString(d.w, d.errmsg)
	return err
}

// The kinds of commands that depend on an if.
const (
	afterIf   = 1 // elif and else
	afterElse = 2 // endif
)

// ssiCommand is a command of SSI. Its error is that of the document: run has logged others, and
// returns errCommand.
type ssiCommand struct {
	run         func(d *document, p ssiParams) error
	params      []string
	needed      []string
	conditional int
	endsBlock   bool
}

// ssiParams are the values of a command's parameters, by name.
type ssiParams map[string]string

// errCommand is the error of a command, which has been logged.
var errCommand = errors.New("a command has failed")

// errUnknown is the errCommand of one whose values are not known, since a match or a value was too large. A client may have caused it.
var errUnknown = fmt.Errorf("%w: its values are not known", errCommand)

var ssiCommands map[string]ssiCommand

func init() {
	ssiCommands = map[string]ssiCommand{
		"include":  {run: (*document).include, params: []string{"virtual", "file", "wait", "set", "stub"}},
		"echo":     {run: (*document).echo, params: []string{"var", "default", "encoding"}, needed: []string{"var"}},
		"config":   {run: (*document).config, params: []string{"errmsg", "timefmt"}},
		"set":      {run: (*document).set, params: []string{"var", "value"}, needed: []string{"var", "value"}},
		"if":       {run: (*document).ifCommand, params: []string{"expr"}, needed: []string{"expr"}},
		"elif":     {run: (*document).elif, params: []string{"expr"}, needed: []string{"expr"}, conditional: afterIf},
		"else":     {run: (*document).elseCommand, conditional: afterIf},
		"endif":    {run: (*document).endif, conditional: afterElse},
		"block":    {run: (*document).block, params: []string{"name"}, needed: []string{"name"}},
		"endblock": {run: (*document).endblock, endsBlock: true},
	}
}

// Command implements ssi.Handler.
func (d *document) Command(c *ssi.Command) error {
	cmd, known := ssiCommands[c.Name]
	switch {
	case !known && d.output:
		d.x.logError("invalid SSI command: \"" + c.Name + "\"")
		return d.showError()
	case !known:
		return nil
	case !d.output && !cmd.endsBlock && d.inBlock:
		return d.keep([]byte(commandText(c)))
	case !d.output && !cmd.endsBlock && cmd.conditional == 0:
		return nil
	case cmd.conditional != 0 && (d.conditional == 0 || d.conditional > cmd.conditional):
		d.x.logError("invalid context of SSI command: \"" + c.Name + "\"")
		return d.showError()
	}
	values, why := cmd.values(c)
	if why != "" {
		d.x.logError(why)
		return d.showError()
	}
	err := cmd.run(d, values)
	if errors.Is(err, errCommand) {
		return d.showError()
	}
	return err
}

// values returns the parameters of a command, or why it can't have them.
func (cmd ssiCommand) values(c *ssi.Command) (values ssiParams, why string) {
	values = ssiParams{}
	for _, p := range c.Params {
		switch _, twice := values[p.Key]; {
		case !slices.Contains(cmd.params, p.Key):
			return nil, "invalid parameter name: \"" + p.Key + "\" in \"" + c.Name + "\" SSI command"
		case twice:
			return nil, "duplicate \"" + p.Key + "\" parameter in \"" + c.Name + "\" SSI command"
		}
		values[p.Key] = p.Value
	}
	for _, name := range cmd.needed {
		if _, ok := values[name]; !ok {
			return nil, "mandatory \"" + name + "\" parameter is absent in \"" + c.Name + "\" SSI command"
		}
	}
	return values, ""
}

// commandText returns a command as a document has it.
func commandText(c *ssi.Command) string {
	var b strings.Builder
	b.WriteString("<!--#" + c.Name)
	for _, p := range c.Params {
		quote := `"`
		if strings.Contains(strings.ReplaceAll(p.Value, `\"`, ""), quote) {
			quote = "'"
		}
		b.WriteString(" " + p.Key + "=" + quote + p.Value + quote)
	}
	b.WriteString(" -->")
	return b.String()
}
