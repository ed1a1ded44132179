package nginx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Emulated is the version of nginx whose behaviour culvert has: field Server, built-in pages and -v name it.
const Emulated = engine.Emulated

// ErrClosed is returned by Listen, Start and Reload behind Shutdown or Close.
var ErrClosed = errors.New("nginx: server closed")

// Server serves a configuration. Its methods are safe for concurrent use by multiple goroutines.
type Server struct {
	options Options             // with an absolute Prefix, and Stderr
	tunnels *wsupgrade.Registry // of all generations

	current atomic.Pointer[generation]
	old     sync.WaitGroup  // generations that finish behind a Reload
	running context.Context // ends when everything is to be cut off
	cut     context.CancelFunc
	ended   chan struct{} // closed when Shutdown is complete

	mu        sync.Mutex                 // held during Listen, Start, Reload and Reopen; guards what follows
	former    map[*generation]struct{}   // those that finish behind a Reload
	sockets   map[socketKey]*socket      // those that are bound; nil before Listen and Start
	leaving   map[socketKey]*socket      // of QUIC, which were closed while they had connections
	inherited map[socketKey]net.Listener // of Options.Listeners, until Listen
	datagrams map[socketKey]*net.UDPConn // of Options.PacketConns, until Listen
	started   bool
	paused    bool // no connections are accepted
	closed    bool
}

// Load is New with a file alone. Paths in it are relative to the current directory.
func Load(path string) (*Server, error) { return New(Options{File: path}) }

// New reads and compiles a configuration, and opens its logs. It binds no address: Listen and Start do. An error
// of the configuration is a *conf.Error, whose text is nginx's, with the file and the line. Close the Server, also one that
// was never started.
func New(o Options) (*Server, error) {
	if o.File == "" {
		return nil, errors.New("nginx: Options.File is empty")
	}
	var err error
	if o.Prefix, err = filepath.Abs(o.Prefix); err != nil { // a Reload may find another current directory
		return nil, err
	}
	o.Stderr = serialize(o.Stderr)
	tunnels, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		return nil, err
	}
	e, err := engine.Load(o.load(tunnels, nil))
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, tunnels: tunnels, inherited: inherit(o.Listeners), datagrams: inheritPackets(o.PacketConns), former: map[*generation]struct{}{}, leaving: map[socketKey]*socket{}, ended: make(chan struct{})}
	s.running, s.cut = context.WithCancel(context.Background())
	s.current.Store(newGeneration(e))
	return s, nil
}

// Listen binds the configuration's addresses without accepting connections, which wait for Start. It is for a program that
// has something to do in between, such as to write a pid file or to give up privileges; Start binds by itself otherwise.
// An address that is in use is tried again four times, half a second apart, as nginx does. If an address cannot be bound, none is, the error's text is nginx's, and Listen may be called again. A second call
// behind a successful one does nothing; one behind Start is an error.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listen()
}

// listen is Listen, for a caller that holds s.mu.
func (s *Server) listen() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.started:
		return errors.New("nginx: server was started before")
	case s.sockets != nil:
		return nil
	}
	sockets, err := s.bind(s.current.Load().engine)
	if err != nil {
		closeAll(sockets)
		return err
	}
	s.sockets = sockets
	s.closeInherited()
	return nil
}

// Start serves the configuration's addresses in the background, and binds them unless Listen has. Directives that are
// accepted and not followed are listed on Options.Stderr and in the error log, as by each Reload from then on; Notes lists
// them for a program that does not call Start. If an address cannot be
// bound, nothing is served, the error's text is nginx's, and Start may be called again. A second call behind a successful
// one is an error.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.listen(); err != nil {
		return err
	}
	s.started = true
	g := s.current.Load()
	s.warn(g.engine)
	g.serve(s.sockets)
	return nil
}

// bind returns a socket for each listener of e: the one that is bound, or a new one. With an error, only the new ones
// are returned, to be closed.
func (s *Server) bind(e *engine.Engine) (map[socketKey]*socket, error) {
	all, fresh := map[socketKey]*socket{}, map[socketKey]*socket{}
	for _, key := range keysOf(e) {
		if all[key] != nil { // http and stream want the same
			return fresh, syserror.Bind(key.String(), syscall.EADDRINUSE)
		}
		if old, ok := s.sockets[key]; ok {
			all[key] = old
			continue
		}
		bound, err := s.listenOn(key, e)
		if err != nil {
			return fresh, err
		}
		fresh[key], all[key] = bound, bound
	}
	return all, nil
}

// Reload reads the configuration again and serves it. Addresses that both configurations have are served without a
// gap: no connection is refused, and requests and tunnels that have begun are completed under the former configuration. The
// counts and zones of limits are kept. If the configuration cannot be loaded or bound, the former one is served still.
func (s *Server) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	former := s.current.Load()
	e, err := engine.Load(s.options.load(s.tunnels, former.engine))
	if err != nil {
		return err
	}
	g := newGeneration(e)
	sockets := s.sockets
	if sockets != nil {
		if sockets, err = s.bind(e); err != nil {
			closeAll(sockets)
			e.Close()
			return err
		}
	}
	if s.started {
		s.warn(e)
		g.serve(sockets)
	}
	s.current.Store(g)
	s.paused = false
	removed := s.replace(sockets)
	s.former[former] = struct{}{}
	s.old.Go(func() {
		for _, socket := range removed {
			socket.awaitDelivered(s.running)
		}
		former.finish(s.running)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.former, former)
		if !s.closed {
			s.logEnded()
		}
	})
	return nil
}

// logEnded logs that nothing is served by a former configuration any more, in nginx's words: scripts wait for them.
func (s *Server) logEnded() {
	s.Logger().Log(context.Background(), LevelNotice, fmt.Sprintf("worker process %d exited with code 0", os.Getpid()))
}

// replace closes the sockets that the new configuration does not have, and returns them. The caller holds s.mu.
func (s *Server) replace(sockets map[socketKey]*socket) (removed []*socket) {
	for key, socket := range s.sockets {
		if sockets[key] != nil {
			continue
		}
		if key.network == "unix" { // whose file is removed with it
			s.Logger().Warn("deleting socket " + socket.Addr().String())
		}
		socket.Close()
		removed = append(removed, socket)
		if socket.http3 != nil {
			s.leaving[key] = socket
		}
	}
	s.sockets = sockets
	return removed
}

// PIDFile returns the absolute path of the configuration's pid file, "" if it has none. Server does not write it.
func (s *Server) PIDFile() string { return s.current.Load().engine.Settings().PIDFile }

// Daemon reports whether the configuration has "daemon on", which Server itself does not follow.
func (s *Server) Daemon() bool { return s.current.Load().engine.Settings().Daemon }

// ErrorLog returns the absolute path of the main error log, or "stderr".
func (s *Server) ErrorLog() string { return s.current.Load().engine.Settings().ErrorLog }

// Dump writes the files of the configuration as nginx -T does.
func (s *Server) Dump(w io.Writer) { s.current.Load().engine.Dump(w) }
