// Package engine turns a configuration into handlers: servers, locations, variables, logs, static
// files and proxying, with nginx's semantics over culvert's packages. Everything is compiled at
// load; nothing of the configuration is parsed while a request is served.
//
// A directive belongs to a module (module.go), which is in the file of the directive's name or of
// its family's: the directives with what compiles them, the slot of their settings, and the hooks
// that the module has in the phases of a request. modules.go lists the modules in the order of the
// phases; the parser's table, the phases and the table in the README are made of that list. A new
// directive of a module changes the module's file alone; a new module has a file and a place in the
// list.
package engine

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// LoadOptions are the options of Load.
type LoadOptions struct {
	// Prefix is the directory that relative paths of the configuration are
	// relative to (nginx -p); "" is the current directory.
	Prefix string
	// File is the configuration (nginx -c), relative to Prefix.
	File string
	// Globals are directives of the main context (nginx -g).
	Globals string
	// ErrorLog is where errors are logged if the configuration names no error_log
	// (nginx -e): a path relative to Prefix, or "stderr". "" is "stderr".
	ErrorLog string
	// ReadFile reads the configuration and what it includes; nil is
	// os.ReadFile. It gets absolute paths.
	ReadFile func(name string) ([]byte, error)
	// Stderr is where "error_log stderr" writes to; nil is os.Stderr.
	Stderr io.Writer
	// Tunnels lists the tunnels, including those of other configurations that share it. If nil,
	// tunnels are not listed.
	Tunnels *wsupgrade.Registry
	// Before is the engine that the new one replaces, nil if there is none. It may still be
	// running. The zones of limit_req and limit_conn, the counts of stub_status and the
	// numbering of connections are taken over from it.
	Before *Engine
	// Extensions are the program's own handlers, directives and variables.
	Extensions Extensions
	// OnError, if not nil, is called with each error of the configuration, and reading continues behind it. Load returns the first
	// still. One may follow from another.
	OnError func(error)
}

// Listener is one socket of the configuration and the handler that serves it.
type Listener struct {
	// Network is "tcp4", "tcp6" or "unix", for net.Listen: "[::]:80" is IPv6 alone, so
	// that it can stand beside "0.0.0.0:80" (nginx's ipv6only=on).
	Network string
	// Address is host:port as net.Listen takes it: "0.0.0.0:80" for every IPv4
	// address, "[::]:80" for every IPv6 address; or a unix socket's path. Equal addresses
	// of two engines mean the same socket.
	Address string
	// TLS is nil for cleartext. It picks the certificate by the client's
	// server name.
	TLS *tls.Config
	// HTTP2 reports whether to serve HTTP/2: by ALPN with TLS, by prior knowledge beside HTTP/1.1
	// on cleartext.
	HTTP2 bool
	// IdleTimeout is how long an idle client connection is kept (keepalive_timeout of the default
	// server); 0 closes the connection after each response.
	IdleTimeout time.Duration
	// ReadHeaderTimeout bounds the reading of a request's header (client_header_timeout).
	ReadHeaderTimeout time.Duration
	// MaxHeaderBytes bounds a request's header (large_client_header_buffers).
	MaxHeaderBytes int
	// MaxStreams bounds the streams of a connection of HTTP/2 (http2_max_concurrent_streams).
	MaxStreams int
	// ProxyProtocol reports whether each connection begins with a PROXY protocol header, below
	// TLS. Its net.Conn must have the method ProxyAddrs() (client, server net.Addr), which
	// returns nil if there was no such header, and keep the addresses of the connection itself.
	ProxyProtocol bool
	// ConnState must be set as the server's: it counts for stub_status.
	ConnState func(net.Conn, http.ConnState)
	// ConnContext should be set as the server's: it numbers connections for $connection.
	// Without it the numbers are 0.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// Handler serves the requests, and those of RefusedRequest.
	Handler http.Handler
}

// StreamListener is one socket of stream.
type StreamListener struct {
	// Network is "tcp4", "tcp6" or "unix", as that of a Listener, or "udp4" or "udp6".
	Network string
	// Address is that of a Listener.
	Address string
	// Port serves what is accepted.
	Port *stream.Port
}

// Settings are the directives of the main context that concern the process.
type Settings struct {
	// PIDFile is the absolute path of the pid file; "" for none.
	PIDFile string
	// Account is who a process of root becomes once its addresses are bound; nil for root itself (user).
	Account *Account
	// Daemon reports whether the process detaches itself from its terminal (daemon on).
	Daemon bool
	// ErrorLog is the absolute path of the main error log, "stderr", or "" for
	// none.
	ErrorLog string
	// ShutdownTimeout is how long a graceful end, or what a reload has replaced, may take;
	// 0 is any time (worker_shutdown_timeout).
	ShutdownTimeout time.Duration
	// Notes describe how culvert treats each directive of the configuration.
	Notes []Note
}

// Note describes how culvert treats one directive.
type Note = conf.Note

// Error is an error of the configuration. It prints as nginx prints it,
// without the "nginx: [emerg] " in front.
type Error = conf.Error

// Listeners returns the sockets of the configuration, in the order in which
// they are first named.
func (e *Engine) Listeners() []Listener { return e.listeners }

// Streams returns the sockets of stream, in the order in which they are first named.
func (e *Engine) Streams() []StreamListener { return e.streams }

// Settings returns the settings of the main context that concern the process.
func (e *Engine) Settings() Settings { return e.settings }

// Logger returns the logger of the main error log. Its lines have nginx's
// format and its levels are filtered by error_log.
func (e *Engine) Logger() *slog.Logger { return e.logger }
