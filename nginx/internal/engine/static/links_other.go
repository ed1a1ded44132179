//go:build !linux

package static

import (
	"io/fs"
	"os"
)

// LinksChecked reports whether this system can follow the policies of Links.
const LinksChecked = false

// Stat describes what has a name.
func (l Links) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
