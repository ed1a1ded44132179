//go:build unix

package static_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe is no file, and is not waited for.
func TestOpenPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, isDir, status := anyLink.Open(name); f != nil || isDir || status != 404 {
		t.Errorf("%v, directory %v, %d", f, isDir, status)
	}
}
