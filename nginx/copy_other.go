//go:build !unix

package nginx

import (
	"net"
	"os"
)

// copyOf returns a copy of a listener's descriptor.
func copyOf(l net.Listener) (*os.File, error) {
	return l.(interface{ File() (*os.File, error) }).File()
}
