package culvert_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The options in SECURITY.md's tables exist, and their comments have the defaults of the tables.
func TestSecurityNamesBounds(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z]+)\\.([A-Za-z.]+)` \\| ([^|]*) ?\\|$")
	rows := row.FindAllStringSubmatch(read(t, "SECURITY.md"), -1)
	if len(rows) < 40 {
		t.Fatalf("%d rows", len(rows))
	}
	packages := map[string]map[string]string{}
	for dir := range publicPackages(t) {
		packages[path.Base(dir)] = comments(t, dir)
	}
	named := map[string]bool{}
	for _, row := range rows {
		option, standard := row[1]+"."+row[2], strings.TrimSpace(row[3])
		if named[option] {
			t.Errorf("two rows of %s", option)
		}
		named[option] = true
		comment, ok := packages[row[1]][row[2]]
		switch {
		case !ok:
			t.Errorf("there is no %s", option)
		case !strings.Contains(comment, standard):
			t.Errorf("%s: its default is not %q according to its comment:\n%s", option, standard, comment)
		}
	}
}

// Each option of a time, a size or a number that bounds what clients or targets do by default is in one of the tables.
func TestSecurityHasBoundsOfExchanges(t *testing.T) {
	page := read(t, "SECURITY.md")
	bounds := regexp.MustCompile(`^(Max|[A-Za-z]*Timeout$)`)
	for dir, types := range map[string][]string{
		"proxy": {"Options"}, "upstream": {"Options"}, "server": {"Server"}, "wsupgrade": {"Options", "RegistryOptions", "Observer"},
	} {
		for _, name := range slices.Sorted(maps.Keys(comments(t, dir))) {
			typ, field, _ := strings.Cut(name, ".")
			if !slices.Contains(types, typ) || !bounds.MatchString(field) || slices.Contains(notBounds, dir+"."+name) {
				continue
			}
			if !strings.Contains(page, "`"+dir+"."+name+"`") {
				t.Errorf("SECURITY.md does not name %s.%s", dir, name)
			}
		}
	}
}

// notBounds are options that only look like bounds of what a peer can do, or are parts of another one.
var notBounds = []string{
	"upstream.Options.MaxFailTimeout",  // health
	"upstream.Options.MaxConnAge",      // for load balancers behind
	"upstream.Options.MaxConnRequests", // the same
	"server.Server.WriteTimeout",       // ends streams
	"wsupgrade.Options.HeaderTimeout",  // within HandshakeTimeout
}

// publicPackages returns the folders of the packages that programs import, with their files.
func publicPackages(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (file == "examples" || file == "nginx" || path.Base(file) == "internal" || path.Base(file) == "testdata" || file == ".git"):
			return fs.SkipDir
		case path.Ext(file) == ".go":
			packages[path.Dir(file)] = append(packages[path.Dir(file)], file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// comments returns the comments of a package's functions, and of the fields of its structs as Type.Field, each on one line.
func comments(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range glob(t, dir+"/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					all[n.Name.Name] = oneLine(n.Doc)
				}
			case *ast.TypeSpec:
				if fields, ok := n.Type.(*ast.StructType); ok {
					for _, field := range fields.Fields.List {
						for _, name := range field.Names {
							all[n.Name.Name+"."+name.Name] = oneLine(field.Doc)
						}
					}
				}
			}
			return true
		})
	}
	return all
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
