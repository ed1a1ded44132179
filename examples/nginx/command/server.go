package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/culvert-go/culvert/examples/nginx/engine"
	"github.com/culvert-go/culvert/wsupgrade"
)

// server is the running process: the sockets and the generations that serve
// them.
type server struct {
	load    engine.LoadOptions
	stderr  io.Writer
	sockets map[string]*socket
	current *generation
	pidFile string
	fast    context.Context // ends when everything is to be cut off
	cut     context.CancelFunc
	old     sync.WaitGroup      // generations that finish
	tunnels *wsupgrade.Registry // of all generations
	signals <-chan os.Signal
}

// start serves a configuration until a signal ends it and returns the exit
// status. ready, if not nil, is called when the listeners are bound.
func start(load engine.LoadOptions, stderr io.Writer, ready func()) int {
	signals, stopSignals := listenForSignals()
	defer stopSignals()
	tunnels, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	load.Tunnels = tunnels
	s := &server{load: load, stderr: stderr, sockets: map[string]*socket{}, tunnels: tunnels}
	s.fast, s.cut = context.WithCancel(context.Background())
	if err := s.begin(); err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	defer removePIDFile(s.pidFile)
	if ready != nil {
		ready()
	}
	s.signals = signals
	for received := range signals {
		o := orders[received]
		s.log(engine.LevelNotice, fmt.Sprintf("signal %d (%s) received, %s", received, o.signal, o.doing))
		if o.do(s); o.last {
			break
		}
	}
	return 0
}

// log writes to the main error log.
func (s *server) log(level slog.Level, text string) {
	s.current.engine.Logger().Log(context.Background(), level, text)
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
	s.warn(e)
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
		listener, err := listen(l)
		if err != nil {
			return fresh, err
		}
		fresh[key] = &socket{Listener: listener}
		all[key] = fresh[key]
	}
	return all, nil
}

// reload serves a new configuration. If it can't be loaded or bound the old one
// stays, and the error goes to its log.
func (s *server) reload() {
	load := s.load
	load.Before = s.current.engine
	e, err := engine.Load(load)
	if err != nil {
		s.log(engine.LevelEmerg, err.Error())
		return
	}
	sockets, err := s.bind(e)
	if err != nil {
		s.log(engine.LevelEmerg, err.Error())
		closeAll(sockets)
		e.Close()
		return
	}
	s.warn(e)
	before, gone := s.current, s.sockets
	s.sockets = sockets
	s.current = startGeneration(e, sockets)
	for key, socket := range gone {
		if sockets[key] == nil {
			s.logDeleted(socket)
			socket.Close()
		}
	}
	s.old.Go(func() { before.finish(s.fast) })
}

// reopen is USR1, for who has moved the log files away.
func (s *server) reopen() {
	if err := s.current.engine.Reopen(); err != nil {
		s.log(engine.LevelEmerg, openError(err).Error())
	}
}

// What WebSockets have to answer the Close frame that they are sent at the end.
// nginx sends none: to it, a tunnel that is cut is 1006.
const (
	stopGrace = 3 * time.Second
	quitGrace = 10 * time.Second
)

// stop ends everything at once, but for a last word to the WebSockets.
func (s *server) stop() {
	closeAll(s.sockets)
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	_ = s.tunnels.Drain(ctx, wsupgrade.GoingAway)
	s.cut()
	s.finish()
}

// quit ends when everything that was begun has ended; WebSockets, which might never,
// are closed. A signal to stop makes that now.
func (s *server) quit() {
	go func() {
		for received := range s.signals {
			if cuts(received) {
				s.cut()
			}
		}
	}()
	var told sync.WaitGroup
	told.Go(s.closeWebSockets)
	s.finish()
	told.Wait()
}

// closeWebSockets sends Close frames, those included of which the handshake is under
// way. Tunnels of other protocols go on.
func (s *server) closeWebSockets() {
	late := time.AfterFunc(quitGrace, func() {
		for t := range s.tunnels.All() {
			if t.Protocol == "websocket" {
				t.Abort()
			}
		}
	})
	defer late.Stop()
	_ = s.tunnels.Drain(s.fast, wsupgrade.GoingAway)
}

// finish stops accepting and returns when everything has ended.
func (s *server) finish() {
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
