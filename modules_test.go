package culvert_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What RELEASING.md relies on: the go.mod files require this repository's modules in one version, go.work replaces
// that version, and no module of programs has a replace directive, which go install refuses.
func TestModulesAgreeOnTheVersion(t *testing.T) {
	ours := regexp.MustCompile(`(?m)^\s*(?:require )?(github\.com/culvert-go/culvert\S*) (v\S+)( => .*)?$`)
	version := ours.FindStringSubmatch(read(t, "nginx/go.mod"))[2]
	for _, file := range append(goModFiles(t), "go.work") {
		text := read(t, file)
		for _, match := range ours.FindAllStringSubmatch(text, -1) {
			if match[2] != version {
				t.Errorf("%s has %s in version %s, want %s", file, match[1], match[2], version)
			}
		}
		replaces := strings.Contains(text, "\nreplace ")
		if installed := !strings.HasPrefix(file, "internal/") && file != "examples/listers/go.mod" && file != "examples/recipes/go.mod" && file != "go.work"; installed && replaces {
			t.Errorf("%s has a replace directive", file)
		}
	}
}

// goModFiles returns the go.mod files of this repository.
func goModFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "go.mod" {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
