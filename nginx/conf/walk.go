package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// walk converts one file's parsed directives into ours, in the order of the file, so that the
// first error is the one that is reported.
type walk struct {
	*parser
	file string
	errs []*Error // what crossplane found in this file, in order
}

func (w *walk) directives(parsed crossplane.Directives, blocks []string) ([]*Directive, error) {
	out := []*Directive{}
	for _, c := range parsed {
		if err := w.failBefore(c.Line); err != nil {
			return nil, err
		}
		d := w.convert(c)
		if d.Name == "include" {
			included, err := w.include(d, blocks)
			if err := w.fail(err); err != nil {
				return nil, err
			}
			out = append(out, included...)
			continue
		}
		if !w.classify(d, blocks) {
			continue
		}
		if err := w.specs.checkSyntax(d, blocks); err != nil {
			if err := w.fail(err); err != nil {
				return nil, err
			}
			continue
		}
		if c.Block != nil {
			inner, err := w.directives(c.Block, append(slices.Clip(blocks), d.Name))
			if err != nil {
				return nil, err
			}
			d.Block = inner
		}
		out = append(out, d)
	}
	return out, nil
}

// failBefore fails by what crossplane has found above a line.
func (w *walk) failBefore(line int) error {
	for ; len(w.errs) > 0 && w.errs[0].Line < line; w.errs = w.errs[1:] {
		if err := w.fail(w.errs[0]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) convert(c *crossplane.Directive) *Directive {
	d := &Directive{Name: unescape(c.Directive), File: w.file, Line: c.Line}
	if w.file == commandLine {
		d.Line = 0
	}
	for _, a := range c.Args {
		d.Args = append(d.Args, unescape(a))
	}
	return d
}

// classify notes the class of d, and reports whether d may stand here. The rest of the file is
// read even if it may not, so that a test of the configuration lists all refused directives. The
// lines in the body of map or types are not directives.
func (w *walk) classify(d *Directive, blocks []string) bool {
	if isData(blocks) {
		return true
	}
	class, reason := w.specs.classOf(d, blocks)
	w.tree.Notes = append(w.tree.Notes, Note{
		Directive: d.Name, Class: class, Reason: reason, File: d.File, Line: d.Line,
	})
	if reason := w.specs.notFollowed(d, blocks); reason != "" {
		w.tree.Notes = append(w.tree.Notes, Note{Directive: d.Name + " " + strings.Join(d.Args, " "), Class: Passed, Reason: reason, File: d.File, Line: d.Line})
	}
	if class == Refused {
		if err := w.fail(d.notSupported(reason)); w.refused == nil {
			w.refused = err
		}
	}
	return class != Refused
}

func (d *Directive) notSupported(reason string) error {
	if reason != "" {
		return d.Errorf("directive \"%s\" is not supported by culvert yet (%s)", d.Name, reason)
	}
	return d.Errorf("directive \"%s\" is not supported by culvert yet", d.Name)
}

func isData(blocks []string) bool {
	if len(blocks) == 0 {
		return false
	}
	return HasRows(blocks[len(blocks)-1])
}

// HasRows reports whether the block of a directive contains rows of a table instead of
// directives.
func HasRows(name string) bool {
	switch name {
	case "charset_map", "geo", "map", "split_clients", "types":
		return true
	}
	return false
}

// include replaces d by the directives of the files that it names.
func (w *walk) include(d *Directive, blocks []string) ([]*Directive, error) {
	if len(d.Args) != 1 {
		return nil, d.Errorf("invalid number of arguments in \"%s\" directive", d.Name)
	}
	pattern := d.Args[0]
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(w.dir, pattern)
	}
	names := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		found, err := filepath.Glob(pattern) // sorted; none is no error, as in nginx
		if err != nil {
			return nil, d.Errorf("%s", openError(pattern, err))
		}
		names = found
	}
	w.tree.Notes = append(w.tree.Notes, Note{Directive: d.Name, Class: Implemented, File: d.File, Line: d.Line})
	var out []*Directive
	for _, name := range names {
		if slices.Contains(w.stack, name) {
			return nil, d.Errorf("cycle of includes: \"%s\" includes itself", name)
		}
		data, err := w.readFile(name)
		if err != nil {
			return nil, d.Errorf("%s", openError(name, err))
		}
		included, err := w.source(name, data, blocks)
		if err != nil {
			return nil, err
		}
		out = append(out, included...)
	}
	return out, nil
}

// openError describes a failure to read a file as nginx does: the system call, the file, the
// error's number and the C library's text.
func openError(name string, err error) string {
	call := "open()"
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe.Op == "read" {
		call = "pread()"
	}
	return fmt.Sprintf("%s \"%s\" failed (%s)", call, name, Errno(err))
}

// Errno describes a system error as nginx does: "2: No such file or directory".
func Errno(err error) string {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
	case errors.Is(err, fs.ErrNotExist):
		no = syscall.ENOENT
	case errors.Is(err, fs.ErrPermission):
		no = syscall.EACCES
	default:
		return err.Error()
	}
	text := no.Error()
	return fmt.Sprintf("%d: %s", int(no), strings.ToUpper(text[:1])+text[1:])
}
