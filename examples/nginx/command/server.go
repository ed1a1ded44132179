package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/culvert-go/culvert/examples/nginx/engine"
)

// server is the running process: the sockets and the generations that serve
// them.
type server struct {
	load    engine.LoadOptions
	sockets map[string]*socket
	current *generation
	pidFile string
	fast    context.Context // ends when everything is to be cut off
	cut     context.CancelFunc
	old     sync.WaitGroup // generations that finish
}

// start serves a configuration until a signal ends it and returns the exit
// status. ready, if not nil, is called when the listeners are bound.
func start(load engine.LoadOptions, stderr io.Writer, ready func()) int {
	signals, stopSignals := listenForSignals()
	defer stopSignals()
	s := &server{load: load, sockets: map[string]*socket{}}
	s.fast, s.cut = context.WithCancel(context.Background())
	if err := s.begin(); err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	defer removePIDFile(s.pidFile)
	if ready != nil {
		ready()
	}
	for received := range signals {
		s.current.engine.Logger().Info(fmt.Sprintf("signal %d (%v) received", received, received))
		switch orders[received] {
		case orderStop:
			s.cut()
			s.quit()
			return 0
		case orderQuit:
			go s.cutOnStop(signals)
			s.quit()
			return 0
		case orderReload:
			s.reload()
		case orderReopen:
			s.reopen()
		}
	}
	return 0
}

// begin loads the first configuration, binds its sockets and writes the pid file.
func (s *server) begin() error {
	e, err := engine.Load(s.load)
	if err != nil {
		return err
	}
	sockets, err := s.bind(e)
	if err == nil {
		s.pidFile = e.Settings().PIDFile
		err = writePIDFile(s.pidFile)
	}
	if err != nil {
		closeAll(sockets)
		e.Close()
		return err
	}
	s.sockets = sockets
	s.current = startGeneration(e, sockets)
	return nil
}

// bind returns a socket for each listener of e: the one that is there, or a new
// one. On an error only the new ones are returned, to be closed.
func (s *server) bind(e *engine.Engine) (map[string]*socket, error) {
	all, fresh := map[string]*socket{}, map[string]*socket{}
	for _, l := range e.Listeners() {
		key := socketKey(l)
		if old, ok := s.sockets[key]; ok {
			all[key] = old
			continue
		}
		listener, err := net.Listen(l.Network, l.Address)
		if err != nil {
			return fresh, bindError(l.Address, err)
		}
		fresh[key] = &socket{Listener: listener}
		all[key] = fresh[key]
	}
	return all, nil
}

// reload serves a new configuration. If it can't be loaded or bound the old one
// stays, and the error goes to its log.
func (s *server) reload() {
	logger := s.current.engine.Logger()
	e, err := engine.Load(s.load)
	if err != nil {
		logger.Error(err.Error())
		return
	}
	sockets, err := s.bind(e)
	if err != nil {
		logger.Error(err.Error())
		closeAll(sockets)
		e.Close()
		return
	}
	before, gone := s.current, s.sockets
	s.sockets = sockets
	s.current = startGeneration(e, sockets)
	for key, socket := range gone {
		if sockets[key] == nil {
			socket.Close()
		}
	}
	s.old.Go(func() { before.finish(s.fast) })
}

// cutOnStop lets a second signal end a graceful quit that takes too long.
func (s *server) cutOnStop(signals <-chan os.Signal) {
	for received := range signals {
		if orders[received] == orderStop {
			s.cut()
		}
	}
}

// reopen is USR1, for who has moved the log files away.
func (s *server) reopen() {
	if err := s.current.engine.Reopen(); err != nil {
		s.current.engine.Logger().Error(openError(err).Error())
	}
}

// quit stops accepting and returns when everything has ended.
func (s *server) quit() {
	closeAll(s.sockets)
	s.current.finish(s.fast)
	s.old.Wait()
}

func closeAll(sockets map[string]*socket) {
	for _, socket := range sockets {
		socket.Close()
	}
}

func socketKey(l engine.Listener) string { return l.Network + " " + l.Address }
