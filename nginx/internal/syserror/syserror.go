// Package syserror describes the errors of system calls as nginx does.
package syserror

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/culvert-go/culvert/nginx/conf"
)

// Open describes an error of opening a file. Other errors are returned as they are.
func Open(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("open() \"%s\" failed (%s)", path.Path, conf.Errno(path.Err))
	}
	return err
}

// failed is an error with nginx's text.
type failed struct {
	text string
	err  error
}

func (f *failed) Error() string { return f.text }
func (f *failed) Unwrap() error { return f.err }

// Bind describes an error of net.Listen.
func Bind(address string, err error) error {
	call := "bind"
	var op *os.SyscallError
	if errors.As(err, &op) {
		call = op.Syscall
	}
	var where *net.OpError
	if errors.As(err, &where) {
		err = where.Err
	}
	return &failed{fmt.Sprintf("%s() to %s failed (%s)", call, address, conf.Errno(err)), err}
}
