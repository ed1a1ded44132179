package simulate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Directories of processes that have ended are removed, and no others.
func TestRemoveLeft(t *testing.T) {
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	left := fmt.Sprintf("%s%d-1", tempPrefix, ended.Process.Pid)
	kept := []string{"another", tempPrefix + "123", tempPrefix + "x-1", fmt.Sprintf("%s%d-1", tempPrefix, os.Getpid())}
	for _, name := range append(slices.Clone(kept), left) {
		if err := os.MkdirAll(filepath.Join(dir, name, "file"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(dir)
	names := (&tempFiles{dir: dir}).names()
	if slices.Sort(kept); !slices.Equal(names, kept) {
		t.Errorf("left are %q, want %q", names, kept)
	}
}
