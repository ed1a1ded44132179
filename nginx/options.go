package nginx

import (
	"io"
	"net"
	"net/http"

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
	// Handlers are handlers of the program's own, by the names that "culvert_handler NAME;" in a location has. A name that the
	// configuration has and Handlers has not is an error of the configuration, and a nil handler one of New. The default is
	// none. All configurations of the Server share the handlers, which are called concurrently: a Reload keeps them.
	//
	// A handler gets the request with the path and the query in URL that its location was found by: decoded, normalised,
	// rewritten. RawPath has the client's escapes if they stand for this path. RequestURI is what the client has sent. A
	// chunked body fails with *http.MaxBytesError at client_max_body_size; a longer Content-Length is refused before. A read of it
	// fails with os.ErrDeadlineExceeded when the client has sent nothing for client_body_timeout, but for the stream of a CONNECT. The
	// response is sent as it is, regardless of its status: the location's filters and header fields apply to it, error_page does
	// not. A Content-Type that is not set is guessed as by net/http's server. A panic is logged, and the response is a 500,
	// for which error_page applies, or broken off behind its header. A location whose prefix ends in a slash redirects
	// the path without it, as for proxy_pass.
	Handlers map[string]http.Handler
	// Directives are directives of the program's own. Where several apply to a request, the first is the outermost. New
	// returns an error for a name that nginx or culvert has, implemented or not, and for one that is there twice. The
	// default is none.
	Directives []Directive
	// Variables are variables of the program's own in http, by their names in lower case without the dollar sign. The default
	// is none. New returns an error for a name that nginx has.
	//
	// A function is called each time that the configuration uses the variable for a request, in any phase, also for the log
	// behind the response. It is called on the request's goroutine, and concurrently for several requests. found is false
	// for no value, which a log shows as "-". The request is like that of a handler; one that is refused for its request line
	// has no header. A panic is logged, and there is no value. A variable with a nil function has the value that
	// SetVariable has set, and none before.
	Variables map[string]func(r *http.Request) (value string, found bool)
	// Listeners are sockets that are bound already, by systemd or by the process that this one replaces (HandOver). Listen
	// takes one whose address is one of the configuration's, written alike, instead of binding the address,
	// and closes the others. They belong to the Server from New on; a second Server with these Options must not have them.
	Listeners []net.Listener
	// PacketConns are the same for addresses of UDP, those of "listen … quic" and of stream. They must be of type *net.UDPConn;
	// others are closed.
	PacketConns []net.PacketConn
}

// load returns the engine's options.
func (o *Options) load(tunnels *wsupgrade.Registry, before *engine.Engine) engine.LoadOptions {
	return engine.LoadOptions{
		Prefix: o.Prefix, File: o.File, Globals: o.Globals, ErrorLog: o.ErrorLog, ReadFile: o.ReadFile, Stderr: o.Stderr,
		Tunnels: tunnels, Before: before,
		Extensions: engine.Extensions{Handlers: o.Handlers, Directives: engineDirectives(o.Directives), Variables: o.Variables},
	}
}

// Notes reads a configuration and returns what each of its directives is to culvert, in the order of the file: up to the
// first error, or to the end if the only errors are directives that are refused. It opens no log and binds no address.
func Notes(o Options) []conf.Note {
	return engine.Notes(o.load(nil, nil))
}
