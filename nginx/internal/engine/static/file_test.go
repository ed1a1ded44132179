package static_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// anyLink allows all symbolic links.
var anyLink static.Links

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "root")
	for name, data := range map[string]string{"secret": "s", "root/f": "f", "root/d/x": "x"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("circle", filepath.Join(inside, "circle")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		dir    bool
		status int
	}{
		{"/f", false, 0},
		{"/d", true, 0},
		{"/d/x", false, 0},
		{"/none", false, 404},
		{"/circle", false, 403},
		{"/f/x", false, 404},
		{"/" + strings.Repeat("a", 5000), false, 404},
		{"/../secret", false, 403},
		{"/d/../../secret", false, 403},
		{"/f\x00.html", false, 403},
	}
	for _, tt := range tests {
		f, isDir, status := anyLink.Open(inside + tt.name)
		if isDir != tt.dir || status != tt.status || (f != nil) != (!tt.dir && tt.status == 0) {
			t.Errorf("%.20q: got %v, directory %v, %d", tt.name, f, isDir, status)
		}
		if f != nil {
			f.Close()
		}
	}
	if anyLink.Exists(inside+"/../secret", false) || !anyLink.Exists(inside+"/f", false) || anyLink.Exists(inside+"/f", true) {
		t.Error("Exists")
	}
}

func TestExtension(t *testing.T) {
	for uri, want := range map[string]string{
		"/a.html": "html", "/a.tar.gz": "gz", "/a": "", "/.profile": "", "/d.x/a": "", "/d.x/": "", "/a.": "", "/A.JS": "JS",
	} {
		if got := static.Extension(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}
