package simulate

import (
	"os"
	"path/filepath"
	"strings"
)

// tempFiles is the directory of a history's temporary files.
type tempFiles struct{ dir string }

// makeTempFiles makes the directory where the gateway holds bodies on disk.
func (w *world) makeTempFiles() (err error) {
	if g := &w.plan.Gateway; g.RequestBuffer == 2 || g.ResponseBuffer == 2 {
		w.files.dir, err = os.MkdirTemp("", "culvert-simulate-*")
	}
	return err
}

// checkTempFiles looks, when the gateway has ended, whether a file or an open descriptor is left, and removes the
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

// descriptors are this process's open files in the directory, those without a name included, where the system
// tells.
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
