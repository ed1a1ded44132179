//go:build !linux

package static

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// descriptor is an open file.
type descriptor struct{ *os.File }

// open opens what has the name, and returns its type. The descriptor is closed if there is an error.
func (f *File) open(_ Links, name string) (kind fs.FileMode, err error) {
	// O_NONBLOCK: opening a pipe must not wait for its writer
	if f.File, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return 0, err
	}
	f.Size, f.ModTime = info.Size(), info.ModTime()
	return info.Mode().Type(), nil
}

// readAt reads a piece of the file at offset.
func (d *descriptor) readAt(p []byte, offset int64) (int, error) { return d.ReadAt(p, offset) }

// seek has Read continue at offset.
func (d *descriptor) seek(offset int64) error {
	_, err := d.Seek(offset, io.SeekStart)
	return err
}
