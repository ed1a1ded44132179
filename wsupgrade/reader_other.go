//go:build !unix

package wsupgrade

import "syscall"

// newSocketReader returns nil: on this system a read can't wait without a buffer.
func newSocketReader(syscall.Conn) reader { return nil }
