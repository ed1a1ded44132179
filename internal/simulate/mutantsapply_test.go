package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutantsApply checks that the text of each mutant still stands exactly once, and that what it makes of its
// package compiles: the package is type-checked with the fault, against the export data of what it imports.
func TestMutantsApply(t *testing.T) {
	packages := listPackages(t)
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		text, err := m.apply()
		if err == nil {
			err = packages.check(&m, text)
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// packages are those that the simulator is built of, by import path.
type packages struct {
	all  map[string]*listed
	fset *token.FileSet
	from types.Importer

	parsed map[string]*ast.File // as they stand, by path
}

// listPackages has go list compile, or find compiled, what the simulator is built of.
func listPackages(t *testing.T) *packages {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	fset := token.NewFileSet()
	return &packages{all: all, fset: fset, parsed: map[string]*ast.File{}, from: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		for _, name := range []string{path, "vendor/" + path} { // the standard library's own
			if p := all[name]; p != nil {
				return os.Open(p.Export)
			}
		}
		return nil, fmt.Errorf("%s is imported newly", path)
	})}
}

// parse parses a file, which is the one that the mutant changes unless source is nil.
func (l *packages) parse(name string, source []byte) (*ast.File, error) {
	const mode = parser.SkipObjectResolution
	if source != nil {
		return parser.ParseFile(l.fset, name, source, mode)
	}
	if f := l.parsed[name]; f != nil {
		return f, nil
	}
	f, err := parser.ParseFile(l.fset, name, nil, mode)
	if err == nil {
		l.parsed[name] = f
	}
	return f, err
}

// check type-checks the mutant's package.
func (l *packages) check(m *mutant, text []byte) error {
	p := l.all["github.com/culvert-go/culvert/"+path.Dir(m.file)]
	if p == nil {
		return fmt.Errorf("the simulator is not built with %s", path.Dir(m.file))
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		var source []byte
		if name == path.Base(m.file) {
			source = text
		}
		f, err := l.parse(filepath.Join(p.Dir, name), source)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: l.from}).Check(p.ImportPath, l.fset, files, nil)
	return err
}
