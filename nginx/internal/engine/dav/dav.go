// Package dav changes files by the methods of WebDAV. Symbolic links are not followed where something is written
// or deleted: they are replaced or removed themselves.
package dav

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Check returns an error for a name that may lead anywhere: one with a ".." or a zero byte. It is fs.ErrPermission. The
// other functions refuse such names, too.
func Check(name string) error {
	if strings.IndexByte(name, 0) < 0 && !slices.Contains(strings.Split(name, "/"), "..") {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
}

// DirMode returns the mode of folders beside files of a mode: who may read the files may enter.
func DirMode(mode fs.FileMode) fs.FileMode { return mode | mode&0o444>>2 }

// File is what Put writes.
type File struct {
	Name    string
	Mode    fs.FileMode
	ModTime time.Time // zero: now
	// CreatePath creates the folders on the way.
	CreatePath bool
}

// Put writes a whole file, or none: it replaces what has the name when all content has been read.
func Put(f File, content io.Reader) error {
	w, err := Create(f)
	if err != nil {
		return err
	}
	defer w.Discard()
	if _, err = io.Copy(w.temp, content); err != nil {
		return err
	}
	return w.Commit()
}

// Writer writes a whole file, or none.
type Writer struct {
	f    File
	temp *os.File
}

// Create returns a Writer of f. It must be ended by Commit, or by Discard.
func Create(f File) (*Writer, error) {
	if err := Check(f.Name); err != nil {
		return nil, err
	}
	temp, err := createTemp(filepath.Dir(f.Name), f.CreatePath)
	return &Writer{f, temp}, err
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) { return w.temp.Write(p) }

// Commit gives the file its name, and replaces what has that.
func (w *Writer) Commit() error {
	defer os.Remove(w.temp.Name()) // fails if it has got its name
	if err := cmp.Or(w.temp.Chmod(w.f.Mode.Perm()), w.temp.Close()); err != nil {
		return err
	}
	if !w.f.ModTime.IsZero() {
		if err := os.Chtimes(w.temp.Name(), w.f.ModTime, w.f.ModTime); err != nil {
			return err
		}
	}
	if w.f.CreatePath {
		if err := makeAll(filepath.Dir(w.f.Name), w.f.Mode); err != nil {
			return err
		}
	}
	return os.Rename(w.temp.Name(), w.f.Name)
}

// Discard removes what was written. Behind Commit it does nothing.
func (w *Writer) Discard() {
	if w.temp.Close() == nil {
		os.Remove(w.temp.Name())
	}
}

// createTemp creates a file in dir, or in the nearest folder around it that exists.
func createTemp(dir string, around bool) (*os.File, error) {
	for {
		temp, err := os.CreateTemp(dir, ".put-*") // with 0600
		outer := filepath.Dir(dir)
		if err == nil || !around || outer == dir || !errors.Is(err, fs.ErrNotExist) {
			return temp, err
		}
		dir = outer
	}
}

// makeAll creates a folder and those around it, for files of a mode.
func makeAll(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
		if err := makeAll(filepath.Dir(dir), mode); err != nil {
			return err
		}
		return makeAll(dir, mode)
	case err != nil:
		return err
	}
	return os.Chmod(dir, DirMode(mode)|0o700)
}

// Mkdir creates a folder for files of a mode.
func Mkdir(name string, mode fs.FileMode) error {
	if err := Check(name); err != nil {
		return err
	}
	name = strings.TrimRight(name, "/")
	if err := os.Mkdir(name, 0o700); err != nil {
		return err
	}
	return os.Chmod(name, DirMode(mode)|0o700)
}

// Delete deletes a file, or a folder with all that is in it.
func Delete(name string) error {
	if err := Check(name); err != nil {
		return err
	}
	name = strings.TrimRight(name, "/")
	if _, err := os.Lstat(name); err != nil {
		return err
	}
	return os.RemoveAll(name)
}

// Copy copies a file with its mode and time, or a folder with all that is in it except links and other special files.
func Copy(from, to string) error {
	if err := cmp.Or(Check(from), Check(to)); err != nil {
		return err
	}
	from, to = strings.TrimRight(from, "/"), strings.TrimRight(to, "/")
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return copyDir(from, to, info)
	}
	return copyFile(from, to)
}

// copyFile copies what a name leads to.
func copyFile(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not wait for its writer
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "open", Path: from, Err: syscall.EACCES}
	}
	return Put(File{Name: to, Mode: info.Mode(), ModTime: info.ModTime()}, f)
}

// copyDir copies a folder. It continues behind what can't be copied, and returns the first error.
func copyDir(from, to string, info fs.FileInfo) (first error) {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		inner, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.IsDir():
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				err = copyDir(inner, target, info)
			}
		case e.Type().IsRegular():
			err = copyFile(inner, target)
		}
		first = cmp.Or(first, err)
	}
	return cmp.Or(first, os.Chmod(to, info.Mode().Perm()), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// Move gives a file or a folder another name, on another disk, too. mode is that of the files for which folders are
// created on the way of a file.
func Move(from, to string, mode fs.FileMode) error {
	if err := cmp.Or(Check(from), Check(to)); err != nil {
		return err
	}
	from, to = strings.TrimRight(from, "/"), strings.TrimRight(to, "/")
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	err = os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) && !info.IsDir() {
		if err = makeAll(filepath.Dir(to), mode); err == nil {
			err = os.Rename(from, to)
		}
	}
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if err := Copy(from, to); err != nil {
		return err
	}
	return Delete(from)
}
