package nginx

import (
	"io"
	"net"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Options are the options of New.
type Options struct {
	// File is the configuration (nginx -c), relative to Prefix. It must not be empty.
	File string
	// Prefix is the directory to which relative paths of the configuration are relative (nginx -p). If it is empty, the
	// directory that is current during New is used, also by each Reload.
	Prefix string
	// Globals are directives of the main context that stand in front of the file's (nginx -g). The default is none.
	Globals string
	// ErrorLog is where errors are logged if the configuration has no error_log (nginx -e): a path relative to Prefix,
	// or "stderr", the default.
	ErrorLog string
	// ReadFile, if not nil, reads the configuration and the files that it includes, in place of os.ReadFile. It is
	// called with absolute paths, during New and Reload. Patterns of include are expanded in the file system, from which
	// certificates, passwords and what is served are read as well.
	ReadFile func(name string) ([]byte, error)
	// Stderr is where "error_log stderr" writes to, and where the directives are listed that are not followed. If it is
	// nil, os.Stderr is used. The Server writes a line at a time, from one goroutine at a time.
	Stderr io.Writer
	// Listeners are sockets that are bound already, by systemd or by the process that this one replaces (HandOver). Listen
	// takes one whose address is one of the configuration's, written alike, instead of binding the address,
	// and closes the others. They belong to the Server from New on; a second Server with these Options must not have them.
	Listeners []net.Listener
}

// load returns the engine's options.
func (o *Options) load(tunnels *wsupgrade.Registry, before *engine.Engine) engine.LoadOptions {
	return engine.LoadOptions{
		Prefix: o.Prefix, File: o.File, Globals: o.Globals, ErrorLog: o.ErrorLog, ReadFile: o.ReadFile, Stderr: o.Stderr,
		Tunnels: tunnels, Before: before,
	}
}

// Notes reads a configuration and returns what each of its directives is to culvert, in the order of the file: up to the
// first error, or to the end if the only errors are directives that are refused. It opens no log and binds no address.
func Notes(o Options) []conf.Note {
	return engine.Notes(o.load(nil, nil))
}
