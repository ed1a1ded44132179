package dav_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/dav"
)

// tree creates files, folders (with a last slash) and links ("name -> target").
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, target, link := strings.Cut(name, " -> ")
		full := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		switch {
		case link:
			err = errors.Join(err, os.Symlink(target, full))
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(full, 0o755))
		default:
			err = errors.Join(err, os.WriteFile(full, []byte(name), 0o640))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// list returns the files below a folder with their content.
func list(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		if err == nil && e.Type().IsRegular() {
			data, _ := os.ReadFile(name)
			all = append(all, rel+"="+string(data))
		} else if err == nil && e.Type()&fs.ModeSymlink != 0 {
			all = append(all, rel+"@")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestPut(t *testing.T) {
	dir := tree(t, "old", "outside", "link -> outside")
	modified := time.Unix(1e9, 0)
	for name, f := range map[string]dav.File{"new": {Mode: 0o644, ModTime: modified}, "old": {Mode: 0o600}, "link": {Mode: 0o600}, "a/b/c": {Mode: 0o644, CreatePath: true}} {
		f.Name = filepath.Join(dir, name)
		if err := dav.Put(f, strings.NewReader("text")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := list(t, dir), "a/b/c=text link=text new=text old=text outside=outside"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	info, _ := os.Stat(filepath.Join(dir, "new"))
	folder, _ := os.Stat(filepath.Join(dir, "a"))
	if info.Mode() != 0o644 || !info.ModTime().Equal(modified) || folder.Mode().Perm() != 0o755 {
		t.Errorf("%v %v, %v", info.Mode(), info.ModTime(), folder.Mode())
	}
}

// An upload that breaks off changes nothing.
func TestPutFails(t *testing.T) {
	dir := tree(t, "old")
	broken := io.MultiReader(strings.NewReader("te"), iotest.ErrReader(io.ErrUnexpectedEOF))
	for name, content := range map[string]io.Reader{"old": broken, "new": broken, "a/b": strings.NewReader("x"), "../x": strings.NewReader("x"), "a\x00": strings.NewReader("x")} {
		if err := dav.Put(dav.File{Name: dir + "/" + name, Mode: 0o644}, content); err == nil {
			t.Errorf("%q is put", name)
		}
	}
	if got := list(t, dir); got != "old=old" {
		t.Error(got)
	}
}

func TestDelete(t *testing.T) {
	dir := tree(t, "a/b/c", "kept/d", "a/link -> ../kept", "e")
	for _, name := range []string{"a/", "e"} {
		if err := dav.Delete(dir + "/" + name); err != nil {
			t.Error(err)
		}
	}
	if got := list(t, dir); got != "kept/d=kept/d" {
		t.Error(got)
	}
	for _, name := range []string{"none", "kept/../kept", "kept/d/x"} {
		if dav.Delete(dir+"/"+name) == nil {
			t.Errorf("%s is deleted", name)
		}
	}
}

func TestCopyAndMove(t *testing.T) {
	dir := tree(t, "a/b/c", "a/link -> ../secret", "secret", "x", "y", "to -> secret")
	for _, step := range []struct {
		do       func(from, to string) error
		from, to string
		fails    bool
	}{
		{dav.Copy, "a/", "d/", false},
		{dav.Copy, "x", "to", false}, // the link is replaced, and not what it leads to
		{dav.Copy, "x", "none/x", true},
		{dav.Copy, "none", "z", true},
		{dav.Copy, "a", "d", true},
		{move, "y", "m/n/y", false},
		{move, "x", "../x", true},
		{move, "d", "d2", false},
	} {
		if err := step.do(dir+"/"+step.from, dir+"/"+step.to); (err != nil) != step.fails {
			t.Errorf("%s to %s: %v", step.from, step.to, err)
		}
	}
	if got, want := list(t, dir), "a/b/c=a/b/c a/link@ d2/b/c=a/b/c m/n/y=y secret=secret to=x x=x"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	info, _ := os.Stat(dir + "/d2/b/c")
	if info.Mode() != 0o640 {
		t.Error(info.Mode())
	}
}

func move(from, to string) error { return dav.Move(from, to, 0o600) }

func TestMkdir(t *testing.T) {
	dir := tree(t, "a")
	if err := dav.Mkdir(dir+"/b/", 0o640); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir + "/b"); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v", info, err)
	}
	for _, name := range []string{"b/", "c/d/", "a/b/", "../b/"} {
		if dav.Mkdir(dir+"/"+name, 0o600) == nil {
			t.Errorf("%s is created", name)
		}
	}
}
