package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// openError prints an error of opening a file as nginx does.
func openError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("open() \"%s\" failed (%s)", path.Path, systemError(path.Err))
	}
	return err
}

// bindError prints an error of net.Listen as nginx does.
func bindError(address string, err error) error {
	call := "bind"
	var op *os.SyscallError
	if errors.As(err, &op) {
		call = op.Syscall
	}
	var where *net.OpError
	if errors.As(err, &where) {
		err = where.Err
	}
	return fmt.Errorf("%s() to %s failed (%s)", call, address, systemError(err))
}

// systemError is "98: Address already in use" for an errno.
func systemError(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	text := errno.Error()
	return fmt.Sprintf("%d: %s%s", int(errno), strings.ToUpper(text[:1]), text[1:])
}
