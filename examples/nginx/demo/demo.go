// Package demo is what the nginx example serves without arguments: a real nginx.conf in front of
// backends of its own, and a page that shows live the incidents for which culvert was made.
package demo

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// AddressVariable is the environment variable that moves the demonstration to
// another address than 127.0.0.1:8080.
const AddressVariable = "CULVERT_DEMO_ADDR"

//go:embed site
var site embed.FS

// Demo is the demonstration's configuration on disk and its backends.
type Demo struct {
	// Address is the address on which the configuration listens.
	Address string
	// Dir is a temporary directory with the configuration and the pages.
	Dir string
	// File is the configuration in it.
	File string

	backends *backends
}

// Start starts the backends on free loopback ports and writes the configuration in front of them.
func Start() (*Demo, error) {
	d := &Demo{Address: "127.0.0.1:8080"}
	if address := os.Getenv(AddressVariable); address != "" {
		d.Address = address
	}
	var err error
	if d.Dir, err = os.MkdirTemp("", "culvert-demo-"); err != nil {
		return nil, err
	}
	d.File = filepath.Join(d.Dir, "nginx.conf")
	if d.backends, err = startBackends(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.Dir))
	}
	if err := d.write(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close stops the backends and removes the directory.
func (d *Demo) Close() error {
	return errors.Join(d.backends.close(), os.RemoveAll(d.Dir))
}

// Announce prints what runs, where to look and how to continue.
func (d *Demo) Announce(w io.Writer) {
	fmt.Fprintf(w, `culvert runs the embedded nginx.conf: %s
access log: %s

  http://%s/         open it: each incident of the past, beside what happens now
  http://%s/status   the upstreams, their servers and the tunnels, as they change

Your own configuration:  go run ./examples/nginx -c /etc/nginx/nginx.conf   (-t tests it, -h tells the rest)
Ctrl-C ends it.
`, d.File, filepath.Join(d.Dir, "access.log"), d.Address, d.Address)
}

// write copies the site into the directory with its placeholders filled in.
func (d *Demo) write() error {
	// The version gives assets new addresses at each start: they may be cached for seven days.
	fill := strings.NewReplacer(append(d.backends.placeholders(),
		"{{ADDRESS}}", d.Address,
		"{{VERSION}}", strconv.FormatInt(time.Now().UnixMilli(), 36))...)
	return fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(d.Dir, strings.TrimPrefix(name, "site"))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := site.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, []byte(fill.Replace(string(content))), 0o644)
	})
}
