package listing_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/listing"
)

// Names without permission are left out and passed to unseen. The test's thread has only the
// rights of other users, even if tests run as root, and ends with its goroutine.
func TestUnseen(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "shown", "link")
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.MkdirAll(filepath.Join(dir, "locked", "inside"), 0o755), os.Mkdir(filepath.Join(dir, "shown"), 0o755),
		os.WriteFile(filepath.Join(dir, "shown", "file"), nil, 0o644), os.Symlink("../locked/inside", link), os.Chmod(filepath.Join(dir, "locked"), 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "locked"), 0o755) })
	shown := open(t, filepath.Join(dir, "shown"))
	var unseen []string
	var list []listing.Entry
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := errors.Join(syscall.Setfsgid(65534), syscall.Setfsuid(65534))
		if err == nil {
			list, err = listing.Read(t.Context(), shown, func(name string) { unseen = append(unseen, name) })
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Name != "file" || !slices.Equal(unseen, []string{link}) {
		t.Errorf("%v, unseen %q", list, unseen)
	}
}
