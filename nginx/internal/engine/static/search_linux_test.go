package static_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// To look for a file and to read a directory need different permissions. The test's thread has
// only the rights of other users, even if tests run as root, and ends with its goroutine.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	modes := map[string]os.FileMode{"open": 0o755, "search": 0o111, "read": 0o444, "locked": 0, "open/inside": 0o755, "locked/inside": 0o755}
	faults := []error{os.Chmod(filepath.Dir(dir), 0o755), os.WriteFile(filepath.Join(dir, "f"), nil, 0o644)}
	for name := range modes {
		faults = append(faults, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	for name, mode := range modes {
		faults = append(faults, os.Chmod(filepath.Join(dir, name), mode))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, name), 0o755) })
	}
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name         string
		search, open int
	}{
		{"/open/", 0, 0},
		{"/open/inside/", 0, 0},
		{"/search/", 0, 403},
		{"/read/", 403, 0},
		{"/locked/", 403, 403},
		{"/locked/inside/", 403, 403},
		{"/none/", 404, 404},
		{"/f/", 404, 404},
		{"/open", 0, 404}, // an alias without its slash
		{"/open/../open/", 404, 403},
		{"/open\x00/", 404, 403},
	}
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := errors.Join(syscall.Setfsgid(65534), syscall.Setfsuid(65534)); err != nil {
			done <- err
			return
		}
		for _, tt := range tests {
			f, open := static.Links{}.OpenDir(dir + tt.name)
			if search := anyLink.Search(dir + tt.name); search != tt.search || open != tt.open || (f != nil) != (open == 0) {
				t.Errorf("%q: search %d, want %d; open %d, want %d", tt.name, search, tt.search, open, tt.open)
			}
			if f != nil {
				f.Close()
			}
		}
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
