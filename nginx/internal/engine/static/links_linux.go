package static

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// LinksChecked reports whether this system can follow the policies of Links.
const LinksChecked = true

// oPath opens a name only to find others below it, or to learn what it is: that needs no right to read. Package syscall lacks
// it (O_PATH of open(2)).
const oPath = 0x200000

// openFD opens name with flags, by the links that are allowed. Each folder on the way is opened by itself, so that none can
// become a link in between.
func (l Links) openFD(name string, flags int) (fd int, err error) {
	flags |= syscall.O_CLOEXEC
	trusted, rest := l.checked(name)
	if rest == "" {
		return again(func() (int, error) { return syscall.Open(name, flags, 0) })
	}
	dir, err := again(func() (int, error) { return syscall.Open(trusted, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(dir) }()
	if strings.HasSuffix(rest, "/") {
		flags |= syscall.O_DIRECTORY
	}
	segments := strings.FieldsFunc(rest, func(c rune) bool { return c == '/' })
	for i, segment := range segments {
		if i == len(segments)-1 {
			return l.openAt(dir, segment, flags)
		}
		next, err := l.openAt(dir, segment, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC)
		if err != nil {
			return 0, err
		}
		_ = syscall.Close(dir)
		dir = next
	}
	return l.openAt(dir, ".", flags)
}

// openAt opens one name in a folder.
func (l Links) openAt(dir int, name string, flags int) (int, error) {
	if l.Policy == OwnersLinks {
		link, err := again(func() (int, error) {
			return syscall.Openat(dir, name, oPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		})
		if err != nil {
			return 0, err
		}
		var stat syscall.Stat_t
		_, err = again(func() (int, error) { return 0, syscall.Fstat(link, &stat) })
		_ = syscall.Close(link)
		switch {
		case err != nil:
			return 0, err
		case stat.Mode&syscall.S_IFMT == syscall.S_IFLNK:
			return openOwned(dir, name, flags, stat.Uid)
		}
	}
	// With O_DIRECTORY it fails with ENOTDIR for a link to a folder, as in nginx.
	fd, err := again(func() (int, error) { return syscall.Openat(dir, name, flags|syscall.O_NOFOLLOW, 0) })
	if err == nil && flags&oPath != 0 && flags&syscall.O_DIRECTORY == 0 { // which opens the link itself
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			_ = syscall.Close(fd)
			return 0, syscall.ELOOP
		}
	}
	return fd, err
}

// openOwned opens what a link leads to, if that belongs to the link's owner.
func openOwned(dir int, name string, flags int, owner uint32) (int, error) {
	fd, err := again(func() (int, error) { return syscall.Openat(dir, name, flags, 0) })
	if err != nil {
		return 0, err
	}
	var stat syscall.Stat_t
	if _, err = again(func() (int, error) { return 0, syscall.Fstat(fd, &stat) }); err == nil && stat.Uid != owner {
		err = syscall.ELOOP
	}
	if err != nil {
		_ = syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}

// Stat describes what has a name.
func (l Links) Stat(name string) (fs.FileInfo, error) {
	if l.Policy == AllLinks {
		return os.Stat(name)
	}
	fd, err := l.openFD(name, oPath)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return f.Stat()
}
