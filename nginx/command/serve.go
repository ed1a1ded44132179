package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// Serve serves a configuration until a signal ends it, and returns the exit status. It writes the pid file, and a process of
// root's becomes that of the configuration's user. ready, if not
// nil, is called when the addresses are bound. Call it once at a time: signals are the process's, and
// so is GOGC, which it adapts to what is live unless the environment sets it. It runs in the foreground; "daemon on" is Run's.
func Serve(o nginx.Options, ready func()) int {
	s, err := nginx.New(o)
	if err != nil {
		fmt.Fprintf(stderrOf(o), "nginx: [emerg] %v\n", err)
		return 1
	}
	return serve(s, false, false, stderrOf(o), ready)
}

// serve is Serve for a loaded configuration. A successor is what another process has started to replace itself, a daemon what
// has no terminal.
func serve(s *nginx.Server, successor, daemon bool, stderr io.Writer, ready func()) int {
	collectSeldom()
	signals, stopSignals := listenForSignals(daemon || successor)
	defer stopSignals()
	if err := start(s); err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	p := &process{server: s}
	if successor {
		p.before = os.Getppid()
	}
	defer p.end()
	s.Logger().Log(context.Background(), nginx.LevelNotice, strings.TrimPrefix(version(), "nginx version: "))
	if ready != nil {
		ready()
	}
	for received := range signals {
		order := orders[received]
		s.Logger().Log(context.Background(), nginx.LevelNotice, fmt.Sprintf("signal %d (%s) received, %s", received, order.signal, order.doing))
		if p.follow(order, signals); order.last {
			break
		}
	}
	return 0
}

// process is the running command.
type process struct {
	server *nginx.Server
	before int // the process that this one is to replace, 0 for none

	mu       sync.Mutex // held while an order is followed
	upgraded bool       // another process serves, too, and has the pid file's name
	ended    bool
}

func (p *process) follow(o order, more <-chan os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = o.last
	o.do(p, more)
}

// end removes the pid file, which is renamed where another process serves.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := p.server.PIDFile()
	if p.upgraded && name != "" {
		name += oldSuffix
	}
	removePIDFile(name)
}

func stderrOf(o nginx.Options) io.Writer {
	if o.Stderr != nil {
		return o.Stderr
	}
	return os.Stderr
}

// start starts a server. Its pid file is written when the addresses are bound, so that a process
// which has them keeps its own, and before anything is served.
func start(s *nginx.Server) error {
	err := s.Listen()
	if err == nil {
		err = writePIDFile(s.PIDFile())
	}
	if err == nil {
		err = s.DropPrivileges()
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Close()
	}
	return err
}

// reload serves a new configuration. If it cannot be loaded or bound, the former one is kept, and
// the error is written to its log.
func reload(p *process, _ <-chan os.Signal) {
	if err := p.server.Reload(); err != nil {
		emerg(p.server, err)
	}
}

// pause stops accepting connections, until a reload.
func pause(p *process, _ <-chan os.Signal) {
	if err := p.server.Pause(); err != nil {
		emerg(p.server, err)
	}
}

// reopen reopens the log files after their rotation.
func reopen(p *process, _ <-chan os.Signal) {
	if err := p.server.Reopen(); err != nil {
		emerg(p.server, syserror.Open(err))
	}
}

func emerg(s *nginx.Server, err error) {
	s.Logger().Log(context.Background(), nginx.LevelEmerg, err.Error())
}

// stopWait is how long a stop waits for what it has cut: WebSockets have three seconds to return a Close frame, and
// handlers of the program may ignore that their requests have ended.
const stopWait = 5 * time.Second

// stop ends everything at once.
func stop(p *process, signals <-chan os.Signal) {
	closed := make(chan struct{})
	go func() { defer close(closed); _ = p.server.Close() }()
	p.awaitStop(closed, signals)
}

// quit ends the server when all requests and tunnels have ended. A signal to stop cuts that
// short.
func quit(p *process, signals <-chan os.Signal) {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	closed := make(chan struct{})
	go func() { defer close(closed); _ = p.server.Shutdown(ctx) }()
	if !awaitUnlessCut(closed, signals) {
		cut()
		p.awaitStop(closed, signals)
	}
}

// awaitUnlessCut waits for the end of the server, and reports whether no signal to stop was received before.
func awaitUnlessCut(closed <-chan struct{}, signals <-chan os.Signal) bool {
	for {
		select {
		case <-closed:
			return true
		case received := <-signals:
			if cuts(received) {
				return false
			}
		}
	}
}

// awaitStop waits for the end of a server that was stopped, for stopWait or until another signal to stop: the process then
// exits beside handlers that still run.
func (p *process) awaitStop(closed <-chan struct{}, signals <-chan os.Signal) {
	late := time.NewTimer(stopWait)
	defer late.Stop()
	for {
		select {
		case <-closed:
			return
		case <-late.C:
			p.server.Logger().Error("handlers have not returned " + stopWait.String() + " after their requests were cut, exiting")
			return
		case received := <-signals:
			if cuts(received) {
				p.server.Logger().Error("handlers have not returned at another signal to stop, exiting")
				return
			}
		}
	}
}
