//go:build !unix

package engine

import (
	"errors"
	"net"
	"os"
	"time"
)

// sendNow sends a datagram. It waits at most a moment for room; full reports whether there was
// none.
func sendNow(c net.Conn, b []byte) (full bool, err error) {
	if err := c.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false, err
	}
	_, err = c.Write(b)
	return errors.Is(err, os.ErrDeadlineExceeded), err
}
