package culvert_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The README's embedding example is the body of Example, which the compiler
// checks; this keeps the two from drifting apart.
func TestReadmeShowsTheCompiledExample(t *testing.T) {
	_, body, ok := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	if !ok {
		t.Fatal("example_test.go has no Example")
	}
	body, _, _ = strings.Cut(body, "\n}\n")
	_, block, ok := strings.Cut(read(t, "README.md"), "```go\nfunc main() {\n")
	if !ok {
		t.Fatal("README.md has no Go block that starts with func main")
	}
	block, _, _ = strings.Cut(block, "\n}\n```")
	if block != body {
		t.Errorf("README.md shows\n%s\nbut example_test.go compiles\n%s", block, body)
	}
}

// The larger example is a program of the examples module, shown as it is, in under
// 80 lines.
func TestReadmeShowsTheGateway(t *testing.T) {
	program := read(t, "examples/gateway/main.go")
	if !strings.Contains(read(t, "README.md"), "```go\n"+program+"```\n") {
		t.Error("README.md does not show examples/gateway/main.go as it is")
	}
	if lines := strings.Count(program, "\n"); lines >= 80 {
		t.Errorf("examples/gateway/main.go has %d lines", lines)
	}
}

// The README begins its incidents with those that the demonstration's page repeats, by the titles of the page's panels and
// in their order.
func TestReadmeTellsTheIncidentsOfThePage(t *testing.T) {
	titles := func(file, pattern string) (list []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			list = append(list, match[1])
		}
		return list
	}
	readme := titles("README.md", `(?m)^\| \*\*([^*]+)\*\*: `)
	page := titles("examples/nginx/demo/site/html/index.html", `<h2 id="[a-z]+-title">([^<]+)</h2>`)
	if len(page) == 0 || !slices.Equal(readme, page) {
		t.Errorf("README.md tells %q, the page %q", readme, page)
	}
}

// Each Go block of a page by task is a part of an example or a recipe, which the compiler checks: as it is, or
// indented as in a function.
func TestPagesShowCompiledExamples(t *testing.T) {
	var examples strings.Builder
	for _, pattern := range []string{"example_*_test.go", "*/example*_test.go", "examples/recipes/*/*.go", "examples/*/example_test.go"} {
		for _, file := range glob(t, pattern) {
			examples.WriteString(read(t, file))
		}
	}
	for _, page := range glob(t, "docs/*.md") {
		blocks := strings.Split(read(t, page), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, block := range blocks {
			block, _, _ = strings.Cut(block, "```\n")
			if !strings.Contains(examples.String(), block) && !strings.Contains(examples.String(), indent(block)) {
				t.Errorf("%s shows code that no example has:\n%s", page, block)
			}
		}
	}
}

// indent indents all lines that are not empty by a tab.
func indent(code string) string {
	return regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(code, "\t$1")
}

// Links in the documentation to files of this repository have a file at their other end.
func TestLinksOfTheDocumentation(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)[^):]*\)`)
	pages := append(glob(t, "docs/*.md"), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "nginx/README.md")
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			}
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// What the pages name as package.Name, or as package.Type.Field, is in the packages.
func TestPagesNameWhatExists(t *testing.T) {
	exported := map[string]map[string]bool{}
	for dir := range publicPackages(t) {
		exported[path.Base(dir)] = identifiers(t, dir)
	}
	name := regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z0-9]*)(?:\\.([A-Z][A-Za-z0-9]*))?[^`]*`")
	found := 0
	for _, page := range append(glob(t, "docs/*.md"), "README.md", "SECURITY.md", "ARCHITECTURE.md") {
		for _, match := range name.FindAllStringSubmatch(read(t, page), -1) {
			of, ours := exported[match[1]]
			if !ours {
				continue
			}
			found++
			if !of[match[2]] || match[3] != "" && !of[match[2]+"."+match[3]] {
				t.Errorf("%s names %s", page, match[0])
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names", found)
	}
}

// identifiers returns the exported names of a package, those of methods and fields as Type.Name.
func identifiers(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for name := range comments(t, dir) {
		names[name] = true
	}
	for _, file := range glob(t, dir+"/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source := read(t, file)
		for _, declared := range []string{`(?m)^func \([a-z]* ?\*?([A-Z]\w*)(?:\[\w+\])?\) (\w+)`, `(?m)^(?:type|const|var) (\w+)()`, `(?m)^\t([A-Z]\w*)()(?:\(| .*=|,|$)`} {
			for _, match := range regexp.MustCompile(declared).FindAllStringSubmatch(source, -1) {
				names[strings.TrimSuffix(match[1]+"."+match[2], ".")] = true
			}
		}
	}
	return names
}
