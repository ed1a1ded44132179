package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// unusedAfter is how long a program is kept that the tests do not use: its source or Go's version have changed.
const unusedAfter = 7 * 24 * time.Hour

// kept is built for a program that has nothing of culvert in it: it is kept in the user's cache directory, as long as the files
// that the patterns match, the Go version and its flags are the same.
func kept(name, dir, pkg string, patterns ...string) func() (program string, err error) {
	return sync.OnceValues(func() (string, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(cache, "culvert-e2e")
		sum, err := sumOf(dir, patterns)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		program := filepath.Join(cache, fmt.Sprintf("%s-%.8x", name, sum))
		now := time.Now()
		if os.Chtimes(program, now, now) == nil { // it is there, and in use
			return program, nil
		}
		made := fmt.Sprintf("%s.%d", program, os.Getpid()) // another run may build it, too
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return "", err
		}
		if err := build(made, dir, pkg, "GOWORK=off"); err != nil {
			return "", err
		}
		if err := os.Rename(made, program); err != nil {
			return "", err
		}
		return program, removeUnused(cache, now.Add(-unusedAfter))
	})
}

// sumOf returns a checksum of what a program is made of.
func sumOf(dir string, patterns []string) ([]byte, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), os.Getenv("GOFLAGS"))
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("made of no %s (%v)", pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(sum, "%s %d\n%s", file, len(content), content)
		}
	}
	return sum.Sum(nil), nil
}

// removeUnused removes the files of dir that were last built or used before a time.
func removeUnused(dir string, before time.Time) error {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		info, infoErr := file.Info()
		switch {
		case errors.Is(infoErr, os.ErrNotExist): // another run has removed it
		case infoErr != nil:
			err = errors.Join(err, infoErr)
		case info.ModTime().Before(before):
			if removeErr := os.Remove(filepath.Join(dir, file.Name())); !errors.Is(removeErr, os.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

// Programs that no run has used for long are removed when another is built, and those in use are kept.
func TestUnusedProgramsAreRemoved(t *testing.T) {
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache))) // which is in the cache directory
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	source := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module small\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	use := func(name string) string {
		program, err := kept(name, source, ".", "go.mod", "*.go")()
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	used, unused := use("used"), use("unused")
	old := time.Now().Add(-2 * unusedAfter)
	for _, program := range []string{used, unused} {
		if err := os.Chtimes(program, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if again := use("used"); again != used {
		t.Errorf("%s was built again as %s", used, again)
	}
	other := use("other")
	for program, want := range map[string]bool{used: true, other: true, unused: false} {
		if _, err := os.Stat(program); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(program), err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(used)); err != nil || len(files) != 2 {
		t.Errorf("left are %v, %v", files, err)
	}
}
