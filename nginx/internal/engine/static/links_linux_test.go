package static_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// Links are followed as the policy says, wherever they are on the way.
func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.MkdirAll(at("real/in"), 0o755), os.WriteFile(at("real/in/f"), []byte("text"), 0o644),
		os.Symlink("f", at("real/in/own")), os.Symlink("f", at("real/in/others")), os.Symlink("real", at("dirlink")), os.Symlink("loop", at("loop")),
		os.Lchown(at("real/in/others"), 12345, 12345),
	); err != nil {
		t.Fatal(err)
	}
	from := func(p static.LinkPolicy, part string) static.Links { return static.Links{Policy: p, From: dir + part} }
	all, none, owners := static.Links{}, static.Links{Policy: static.NoLinks}, static.Links{Policy: static.OwnersLinks}
	for _, tt := range []struct {
		links  static.Links
		name   string
		status int
	}{
		{all, "/real/in/others", 0},
		{none, "/real/in/f", 0},
		{none, "/real//in///f", 0},
		{none, "/real/in/own", 403},
		{none, "/dirlink/in/f", 404},
		{none, "/loop", 403},
		{none, "/real/in/f/", 404},
		{none, "/real/in/own/", 404},
		{none, "/real/in/none", 404},
		{none, "/real/none/f", 404},
		{none, "/real/in/f/x", 404},
		{none, "/real/../real/in/f", 403},
		{owners, "/real/in/f", 0},
		{owners, "/real/in/own", 0},
		{owners, "/dirlink/in/f", 0},
		{owners, "/real/in/others", 403},
		{owners, "/dirlink/in/others", 403},
		{from(static.NoLinks, "/dirlink"), "/dirlink/in/f", 0},
		{from(static.NoLinks, "/dirlink/"), "/dirlink/in/f", 0},
		{from(static.NoLinks, "/dirlink"), "/dirlink/in/own", 403},
		{from(static.NoLinks, "/dir"), "/dirlink/in/f", 404}, // not a whole name
		{from(static.NoLinks, "/real/in/own"), "/real/in/own", 0},
	} {
		f, isDir, status := tt.links.Open(dir + tt.name)
		if status != tt.status || isDir || (f != nil) != (status == 0) {
			t.Errorf("%+v %s: %d, want %d", tt.links, tt.name, status, tt.status)
		}
		if f != nil {
			f.Close()
		}
		if got := tt.links.Exists(dir+tt.name, false); got != (tt.status == 0) {
			t.Errorf("%+v %s: exists %v", tt.links, tt.name, got)
		}
	}
	for _, tt := range []struct {
		links  static.Links
		name   string
		status int
	}{{all, "/dirlink/in/", 0}, {none, "/real/in/", 0}, {none, "/dirlink/in/", 404}, {none, "/dirlink/", 404}, {owners, "/dirlink/", 0}, {none, "/none/", 404}, {none, "/real/in/f", 404}} {
		if got := tt.links.Search(dir + tt.name); got != tt.status {
			t.Errorf("search %+v %s: %d, want %d", tt.links, tt.name, got, tt.status)
		}
		if got := tt.links.Exists(dir+tt.name, true); got != (tt.status == 0) {
			t.Errorf("folder %+v %s: %v", tt.links, tt.name, got)
		}
	}
}
