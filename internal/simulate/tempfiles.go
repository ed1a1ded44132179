package simulate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tempPrefix begins the name of each directory of temporary files. The number of the process that made it follows.
const tempPrefix = "culvert-simulate-"

// removeLeft removes the directories in dir of processes that have ended without removing them.
func removeLeft(dir string) {
	list, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*-*"))
	if err != nil {
		return
	}
	for _, name := range list {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), tempPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && gone(pid) {
			_ = os.RemoveAll(name)
		}
	}
}

// gone reports whether a process has ended. It returns false if the system does not report it.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// tempFiles is the directory of a history's temporary files.
type tempFiles struct{ dir string }

// makeTempFiles makes the directory where the gateway holds bodies on disk.
func (w *world) makeTempFiles() (err error) {
	if g := &w.plan.Gateway; g.RequestBuffer == 2 || g.ResponseBuffer == 2 {
		w.files.dir, err = os.MkdirTemp("", fmt.Sprintf("%s%d-*", tempPrefix, os.Getpid()))
	}
	return err
}

// checkTempFiles checks, when the gateway has ended, that no file and no open descriptor is left, and removes the
// directory.
func (w *world) checkTempFiles() {
	if w.files.dir == "" {
		return
	}
	defer os.RemoveAll(w.files.dir)
	for _, name := range w.files.names() {
		w.journal.Break("left", "a temporary file %s", name)
	}
	for _, name := range w.files.descriptors() {
		w.journal.Break("left", "an open descriptor of %s", name)
	}
}

// gone reports whether nothing is left.
func (f *tempFiles) gone() bool {
	return f.dir == "" || len(f.names())+len(f.descriptors()) == 0
}

// names are the files in the directory.
func (f *tempFiles) names() (list []string) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// descriptors returns this process's open files in the directory, including those without a name, if the system can
// list them.
func (f *tempFiles) descriptors() (list []string) {
	const all = "/proc/self/fd"
	entries, err := os.ReadDir(all)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(all, e.Name())); err == nil && strings.HasPrefix(to, f.dir+"/") {
			list = append(list, to)
		}
	}
	return list
}
