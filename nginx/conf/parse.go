package conf

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// Options are the options of Parse.
type Options struct {
	// File is the absolute path of the configuration. Includes are relative
	// to its directory.
	File string
	// Globals are directives of the main context that come from the command
	// line. They are read first.
	Globals string
	// ReadFile reads a file by its absolute path; nil is os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Implemented lists the directives that the caller implements.
	Implemented Specs
	// OnError, if not nil, is called with each error, and reading continues behind it: a directive that is at fault is left out.
	// Parse returns the first still.
	OnError func(error)
}

// commandLine is how nginx names the place of -g's directives.
const commandLine = "command line"

// Parse parses a configuration and all it includes, checks names, contexts and argument counts,
// and refuses what is not implemented. The error is an *Error with nginx's text, the
// first one if there are several. The tree's Notes describe the directives before it, and after
// it too if a directive was refused.
func Parse(o Options) (*Tree, error) {
	p := &parser{specs: o.Implemented, dir: filepath.Dir(o.File), readFile: o.ReadFile, onError: o.OnError, tree: &Tree{}}
	if p.readFile == nil {
		p.readFile = os.ReadFile
	}
	err := p.fail(p.read(o))
	return p.tree, cmp.Or(p.refused, err, p.first)
}

// fail returns err, or nil where reading is to continue behind it.
func (p *parser) fail(err error) error {
	if err == nil || p.onError == nil {
		return err
	}
	p.first = cmp.Or(p.first, err)
	p.onError(err)
	return nil
}

func (p *parser) read(o Options) error {
	globals, err := p.source(commandLine, []byte(o.Globals), nil)
	if err != nil {
		return err
	}
	data, err := p.readFile(o.File)
	if err != nil {
		return &Error{What: openError(o.File, err)}
	}
	main, err := p.source(o.File, data, nil)
	if err != nil {
		return err
	}
	p.tree.Main = append(globals, main...)
	return p.checkDuplicates(p.tree.Main, nil)
}

type parser struct {
	specs    Specs
	dir      string
	readFile func(string) ([]byte, error)
	tree     *Tree
	onError  func(error)
	first    error    // of those that onError has received
	refused  error    // the error of the first refused directive
	stack    []string // the files that are being read, outermost first
}

// source parses one file's text. blocks are the names of the blocks around it.
func (p *parser) source(name string, data []byte, blocks []string) ([]*Directive, error) {
	if name != commandLine {
		p.remember(name, data)
	}
	if err := checkTokens(name, data); err != nil {
		return nil, err
	}
	parsed, errs, err := p.parseIn(name, data, blocks)
	if err != nil {
		return nil, err
	}
	p.stack = append(p.stack, name)
	defer func() { p.stack = p.stack[:len(p.stack)-1] }()
	w := &walk{parser: p, file: name, errs: errs}
	out, err := w.directives(parsed, blocks)
	if err == nil {
		err = w.failBefore(math.MaxInt)
	}
	return out, err
}

func (p *parser) remember(name string, data []byte) {
	for _, f := range p.tree.Files {
		if f.Name == name {
			return
		}
	}
	p.tree.Files = append(p.tree.Files, File{Name: name, Data: data})
}

// parseIn has crossplane parse data as if it stood inside blocks, on its own lines, so that
// contexts are checked in included files too. (crossplane's own includes check each file once, in
// the context of its first include, and do not check the bodies of map and types.)
func (p *parser) parseIn(name string, data []byte, blocks []string) (crossplane.Directives, []*Error, error) {
	var text bytes.Buffer
	for _, b := range blocks {
		text.WriteString(opening(b))
	}
	text.Write(data)
	text.WriteString("\n" + strings.Repeat("}", len(blocks)))
	payload, err := crossplane.Parse(name, &crossplane.ParseOptions{
		SingleFile:               true,
		ErrorOnUnknownDirectives: true,
		DirectiveSources:         []crossplane.MatchFunc{crossplane.MatchOssLatest, matchOwn, matchLoaded, p.specs.matchSyntax},
		Open:                     func(string) (io.ReadCloser, error) { return io.NopCloser(&text), nil },
	})
	if err != nil {
		return nil, nil, &Error{What: err.Error()}
	}
	var errs []*Error
	for _, e := range payload.Errors {
		if restoreVolatile(payload.Config[0].Parsed, e.Error) {
			continue
		}
		if fault := fromCrossplane(name, e.Error); fault != nil {
			errs = append(errs, fault)
		}
	}
	parsed := payload.Config[0].Parsed
	for range blocks {
		if len(parsed) == 0 {
			break
		}
		parsed = parsed[0].Block
	}
	return parsed, errs, nil
}

// opening returns a block's first line with as many arguments as it needs.
func opening(block string) string {
	switch block {
	case "location", "upstream":
		return block + " x {"
	case "geo":
		return "geo $a {"
	case "if":
		return "if ($a) {"
	case "limit_except":
		return "limit_except GET {"
	case "map", "split_clients":
		return block + " a $b {"
	}
	return block + " {"
}

// fromCrossplane turns a parser's error into ours. It returns nil for what is not an error to
// nginx: a line of types may name no extension.
func fromCrossplane(name string, err error) *Error {
	pe, ok := err.(*crossplane.ParseError)
	if !ok {
		return &Error{What: err.Error(), File: name}
	}
	e := &Error{What: pe.What, File: name}
	if pe.What == "invalid number of parameters" {
		switch pe.BlockCtx {
		case "types":
			return nil
		case "geo", "map":
			e.What = "invalid number of the " + pe.BlockCtx + " parameters"
		}
	}
	if pe.Line != nil && name != commandLine {
		e.Line = *pe.Line
	}
	return e
}

// checkTokens finds unbalanced braces and a missing end before the text is put between the braces
// of its context.
func checkTokens(name string, data []byte) error {
	var last crossplane.NgxToken
	var failed *Error
	for t := range crossplane.Lex(bytes.NewReader(data)) {
		switch {
		case t.Error != nil && failed == nil:
			failed = fromCrossplane(name, t.Error)
		case t.IsQuoted || !strings.HasPrefix(t.Value, "#"):
			last = t
		}
	}
	within := last.Value != "" && (last.IsQuoted || last.Value != ";" && last.Value != "{" && last.Value != "}")
	switch {
	case within && (failed == nil || strings.HasPrefix(failed.What, "unexpected end")):
		e := &Error{What: `unexpected end of file, expecting ";" or "}"`, File: name, Line: last.Line}
		if name == commandLine {
			e.Line = 0
		}
		return e
	case failed != nil:
		return failed
	}
	return nil
}
