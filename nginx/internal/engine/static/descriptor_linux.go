package static

import (
	"io"
	"io/fs"
	"syscall"
	"time"
)

// descriptor is an open file without an os.File: that one is offered to the poller, which takes no regular files, and
// has a finalizer. For a small file both cost more than to read it.
type descriptor struct{ fd int }

// open opens what has the name, and returns its type. The descriptor is closed if there is an error.
func (f *File) open(l Links, name string) (kind fs.FileMode, err error) {
	// O_NONBLOCK: opening a pipe must not wait for its writer
	if f.fd, err = l.openFD(name, syscall.O_RDONLY|syscall.O_NONBLOCK); err != nil {
		return 0, err
	}
	var stat syscall.Stat_t
	if _, err = again(func() (int, error) { return 0, syscall.Fstat(f.fd, &stat) }); err != nil {
		f.Close()
		return 0, err
	}
	f.Size, f.ModTime = stat.Size, time.Unix(stat.Mtim.Unix())
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 0, nil
	case syscall.S_IFDIR:
		return fs.ModeDir, nil
	}
	return fs.ModeIrregular, nil
}

// again repeats a system call that a signal has interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != syscall.EINTR {
			return n, err
		}
	}
}

// Close closes f.
func (d *descriptor) Close() { _ = syscall.Close(d.fd) }

// Read implements io.Reader.
func (d *descriptor) Read(p []byte) (int, error) {
	return atEnd(again(func() (int, error) { return syscall.Read(d.fd, p) }))
}

// readAt reads a piece of the file at offset.
func (d *descriptor) readAt(p []byte, offset int64) (int, error) {
	return atEnd(again(func() (int, error) { return syscall.Pread(d.fd, p, offset) }))
}

// atEnd adds io.EOF to the result of a read.
func atEnd(n int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// seek has Read continue at offset.
func (d *descriptor) seek(offset int64) error {
	_, err := syscall.Seek(d.fd, offset, io.SeekStart)
	return err
}

// SyscallConn implements syscall.Conn, for sendfile.
func (d *descriptor) SyscallConn() (syscall.RawConn, error) { return rawConn(d.fd), nil }

// rawConn is a descriptor as a syscall.RawConn.
type rawConn int

// Control implements syscall.RawConn.
func (c rawConn) Control(f func(fd uintptr)) error {
	f(uintptr(c))
	return nil
}

// Read implements syscall.RawConn.
func (c rawConn) Read(f func(fd uintptr) (done bool)) error {
	if !f(uintptr(c)) {
		return syscall.EAGAIN // of a regular file it never is
	}
	return nil
}

// Write implements syscall.RawConn.
func (c rawConn) Write(func(fd uintptr) (done bool)) error { return syscall.EBADF }
