package conf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
)

// Each directive of nginx's open-source modules, as the parser knows them, has a class.
func TestEveryDirectiveHasAClass(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nginxinc/nginx-go-crossplane").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "analyze_oss_latest_directives.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]conf.Class{}
	var families []string
	for _, row := range implemented.Rows() {
		known[row.Name] = row.Class
		if prefix, ok := strings.CutSuffix(row.Name, "…"); ok {
			families = append(families, prefix)
		}
	}
	names := regexp.MustCompile(`(?m)^\s*"(\w+)": *\{`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 600 {
		t.Fatalf("only %d directives were found", len(names))
	}
	inFamily := func(name string) bool {
		for _, prefix := range families {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
	for _, name := range names {
		if _, ok := known[name[1]]; !ok && !inFamily(name[1]) {
			t.Errorf("%s has no class", name[1])
		}
	}
}
