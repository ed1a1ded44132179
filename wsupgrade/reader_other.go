//go:build !unix

package wsupgrade

import "syscall"

// newSocketReader says that this system's sockets can't be asked without a buffer.
func newSocketReader(syscall.Conn) reader { return nil }
