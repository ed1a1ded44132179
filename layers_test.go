package culvert_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forTests are the packages that only tests and the programs among them import.
var forTests = []string{"internal/choices", "internal/leaktest", "internal/simulate", "internal/stress", "internal/wiretest",
	"internal/wiretest/ownserver"}

// Each package of the library is in the table of ARCHITECTURE.md, and imports only packages below it.
func TestPackagesImportDownwards(t *testing.T) {
	order := rows(t, "Layers")
	for pkg, imports := range imports(t, ".") {
		at := slices.Index(order, pkg)
		if at < 0 && pkg != "." && !slices.Contains(forTests, pkg) {
			t.Errorf("ARCHITECTURE.md has no row for %s", pkg)
		}
		for _, imported := range imports {
			switch below := slices.Index(order, imported); {
			case imported == ".": // at the end of the table
			case pkg == ".":
				t.Errorf("the root package imports %s", imported)
			case at >= 0 && below <= at:
				t.Errorf("%s imports %s, which is not below it", pkg, imported)
			}
		}
	}
}

// So is each package of module nginx, and so does it.
func TestPackagesOfNginxImportDownwards(t *testing.T) {
	order, all := rows(t, "nginx"), imports(t, "nginx")
	for pkg, imports := range all {
		at := slices.Index(order, pkg)
		if at < 0 {
			t.Errorf("ARCHITECTURE.md has no row for %s", pkg)
		}
		for _, imported := range imports {
			if _, ok := all[imported]; ok && slices.Index(order, imported) <= at {
				t.Errorf("%s imports %s, which is not below it", pkg, imported)
			}
		}
	}
	for _, pkg := range order {
		if _, ok := all[pkg]; !ok {
			t.Errorf("ARCHITECTURE.md has a row for %s, which is no package", pkg)
		}
	}
}

// rows returns the packages that the tables of a section of ARCHITECTURE.md name, in their order.
func rows(t *testing.T, section string) (packages []string) {
	_, text, ok := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("ARCHITECTURE.md has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9/-]+)` \\| ").FindAllStringSubmatch(text, -1) {
		packages = append(packages, row[1])
	}
	return packages
}

// The functions that ARCHITECTURE.md lists are in the files that it says. It lists them as
// "file.go: one, other".
func TestArchitectureNamesFunctions(t *testing.T) {
	listed := regexp.MustCompile("`([a-z0-9_/]+\\.go): ([A-Za-z0-9, ]+)`").FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1)
	if len(listed) == 0 {
		t.Error("no functions")
	}
	for _, match := range listed {
		source := read(t, match[1])
		for name := range strings.SplitSeq(match[2], ", ") {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^func (\([^)]*\) )?%s[\[(]`, name)).MatchString(source) {
				t.Errorf("%s has no function %s", match[1], name)
			}
		}
	}
}

// imports returns the packages of culvert that each package of the module in a folder imports, without its
// tests.
func imports(t *testing.T, root string) map[string][]string {
	const module = "github.com/culvert-go/culvert"
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (slices.Contains([]string{"examples", "nginx", "internal/e2e", "internal/bench"}, filepath.ToSlash(path)) || entry.Name() == ".git"):
			return filepath.SkipDir // other modules
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		all[pkg] = append(all[pkg], []string{}...)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			below, ok := strings.CutPrefix(imported, module+"/")
			if imported == module {
				below, ok = ".", true
			}
			if ok && !slices.Contains(all[pkg], below) {
				all[pkg] = append(all[pkg], below)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
