package culvert_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Each exported constructor of a public package is called by an Example, which documentation shows beside it: one of its
// own name, of the type that it returns, or of the package.
func TestConstructorsHaveExamples(t *testing.T) {
	found := 0
	for dir, files := range publicPackages(t) {
		var constructors []*ast.FuncDecl
		var examples []*ast.FuncDecl
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range parsed.Decls {
				f, ok := decl.(*ast.FuncDecl)
				switch {
				case !ok || f.Recv != nil:
				case !strings.HasSuffix(file, "_test.go") && isConstructor(f):
					constructors = append(constructors, f)
				case strings.HasSuffix(file, "_test.go") && strings.HasPrefix(f.Name.Name, "Example"):
					examples = append(examples, f)
				}
			}
		}
		for _, constructor := range constructors {
			found++
			if !hasExample(path.Base(dir), constructor, examples) {
				t.Errorf("no Example calls %s.%s: write Example%[2]s in %[3]s/example_test.go", path.Base(dir), constructor.Name.Name, dir)
			}
		}
	}
	if found < 50 {
		t.Errorf("%d constructors", found)
	}
}

// isConstructor reports whether f is exported and called New…, or returns a filter, a handler, a function, or a value of its
// package, alone or with an error.
func isConstructor(f *ast.FuncDecl) bool {
	results := f.Type.Results
	if !f.Name.IsExported() || results == nil {
		return false
	}
	if strings.HasPrefix(f.Name.Name, "New") {
		return true
	}
	last, hasError := results.List[len(results.List)-1].Type.(*ast.Ident)
	fails := hasError && last.Name == "error" && len(results.List) == 2
	switch result := results.List[0].Type.(type) {
	case *ast.SelectorExpr:
		return result.Sel.Name == "Filter" || result.Sel.Name == "Handler"
	case *ast.FuncType:
		return fails || returnsHandler(result)
	case *ast.StarExpr:
		_, ours := result.X.(*ast.Ident)
		return ours && (fails || len(results.List) == 1)
	case *ast.Ident:
		return ast.IsExported(result.Name) && fails || interfaces[result.Name]
	}
	return false
}

// interfaces are those of which a package has constructors without an error.
var interfaces = map[string]bool{"Balance": true}

func returnsHandler(f *ast.FuncType) bool {
	if f.Results == nil || len(f.Results.List) != 1 {
		return false
	}
	result, ok := f.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && result.Sel.Name == "Handler"
}

// hasExample reports whether one of examples is shown beside the constructor and calls it.
func hasExample(pkg string, constructor *ast.FuncDecl, examples []*ast.FuncDecl) bool {
	names := "|" + constructor.Name.Name
	switch result := constructor.Type.Results.List[0].Type.(type) {
	case *ast.StarExpr:
		if typ, ok := result.X.(*ast.Ident); ok {
			names += "|" + typ.Name
		}
	case *ast.Ident:
		names += "|" + result.Name
	}
	shown := regexp.MustCompile(`^Example(` + names + `)(_[a-z].*)?$`)
	for _, example := range examples {
		if shown.MatchString(example.Name.Name) && calls(example, pkg, constructor.Name.Name) {
			return true
		}
	}
	return false
}

func calls(f *ast.FuncDecl, pkg, name string) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == name {
				of, ok := selector.X.(*ast.Ident)
				found = found || ok && of.Name == pkg
			}
		}
		return true
	})
	return found
}
