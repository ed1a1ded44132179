package engine

import (
	"os"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Each directive is in one module, except for those that stand inside upstream as well, and has
// no other verdict.
func TestDirectivesAreInOneModule(t *testing.T) {
	levels, upstreams := map[string]bool{}, map[string]bool{}
	for _, m := range modules() {
		for _, d := range m.directives {
			seen := levels
			if d.upstream != nil {
				seen = upstreams
			}
			if seen[d.name] {
				t.Errorf("%s is in the list twice", d.name)
			}
			seen[d.name] = true
		}
	}
	for _, row := range conf.Specs.Rows(nil) {
		if row.Name != "include" && (levels[row.Name] || upstreams[row.Name]) {
			t.Errorf("%s is implemented, and %s in the tables of conf", row.Name, row.Class)
		}
	}
}

// Each variable is defined once: by one module, or by package vars.
func TestVariablesAreDefinedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range modules() {
		for name := range m.variables {
			if seen[name] || vars.NewScope(nil).Builtin(name) {
				t.Errorf("$%s is defined twice", name)
			}
			seen[name] = true
		}
	}
}

// README.md has the table of all directives that the code describes.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), conf.TableBegins)
	table, _, found := strings.Cut(table, conf.TableEnds)
	if !found {
		t.Fatal("the README has no table")
	}
	if table != Directives().Table() {
		t.Error("the table is not the code's: go generate ./nginx/internal/engine")
	}
}
