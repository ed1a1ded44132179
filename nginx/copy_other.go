//go:build !unix

package nginx

import "os"

// copyOf returns a copy of a listener's descriptor.
func copyOf(l descriptor) (*os.File, error) {
	return l.File()
}
