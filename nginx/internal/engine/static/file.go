// Package static serves files as nginx's static module does: its ETag, its
// rules for conditions and ranges, its statuses.
package static

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// File is a regular file that is opened for reading. It is not safe for concurrent use.
type File struct {
	Size    int64
	ModTime time.Time
	descriptor
}

// Open opens the regular file of the name. status is 0, or nginx's status of a failure: 404 if the
// file does not exist or is not a regular file, 403 without permission, for a circle of links or for one that is not allowed,
// else 500. For a directory dir is true and f is nil. A name with a ".." segment that is not given is never opened.
func (l Links) Open(name string) (f *File, dir bool, status int) {
	if l.climbs(name) {
		return nil, false, 403
	}
	f = new(File)
	kind, err := f.open(l, name)
	switch {
	case err != nil:
		return nil, false, statusOf(err)
	case kind.IsRegular():
		return f, false, 0
	}
	f.Close()
	if kind.IsDir() {
		return nil, true, 0
	}
	return nil, false, 404
}

// Exists reports whether name exists: as a directory if dir is set, else as anything but a
// directory.
func (l Links) Exists(name string, dir bool) bool {
	if l.climbs(name) {
		return false
	}
	info, err := l.Stat(name)
	return err == nil && info.IsDir() == dir
}

// Search returns 0 if files of the directory can be looked for, or nginx's status if they can't:
// 404 for what is not a directory, 403 without permission to enter it.
func (l Links) Search(name string) (status int) {
	if l.climbs(name) {
		return 404
	}
	if _, err := l.Stat(name + "/."); err != nil { // its own name would need no permission to enter
		return statusOf(err)
	}
	return 0
}

// OpenDir opens a directory to read its names. Its failures are those of Open. A name that does
// not end in a slash, from an alias without one, is not found: longer paths lead beside the
// directory and not into it. (nginx cuts a letter off the name, and finds nothing.)
func (l Links) OpenDir(name string) (dir *os.File, status int) {
	switch {
	case l.climbs(name):
		return nil, 403
	case !strings.HasSuffix(name, "/"):
		return nil, 404
	}
	dir, err := os.Open(name)
	if err != nil {
		return nil, statusOf(err)
	}
	return dir, 0
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return 404
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ELOOP):
		return 403
	}
	return 500
}

// Extension returns the extension of a path as in nginx: a dot at the start of the whole name
// begins none.
func Extension(uri string) string {
	base := path.Base(uri)
	if strings.HasSuffix(uri, "/") {
		return ""
	}
	if i := strings.LastIndexByte(base, '.'); i > 0 {
		return base[i+1:]
	}
	return ""
}

// ReadAt implements io.ReaderAt, except that it may read less than all of p without an error.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.readAt(p, offset) }
