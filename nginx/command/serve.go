package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// Serve serves a configuration until a signal ends it, and returns the exit status. It writes the pid file. ready, if not
// nil, is called when the addresses are bound. Call it once at a time: signals are the process's, and
// so is GOGC, which it adapts to what is live unless the environment sets it.
func Serve(o nginx.Options, ready func()) int {
	collectSeldom()
	signals, stopSignals := listenForSignals()
	defer stopSignals()
	s, err := start(o)
	if err != nil {
		fmt.Fprintf(stderrOf(o), "nginx: [emerg] %v\n", err)
		return 1
	}
	defer removePIDFile(s.PIDFile())
	s.Logger().Log(context.Background(), nginx.LevelNotice, strings.TrimPrefix(version(), "nginx version: "))
	if ready != nil {
		ready()
	}
	for received := range signals {
		order := orders[received]
		s.Logger().Log(context.Background(), nginx.LevelNotice, fmt.Sprintf("signal %d (%s) received, %s", received, order.signal, order.doing))
		if order.do(s, signals); order.last {
			break
		}
	}
	return 0
}

func stderrOf(o nginx.Options) io.Writer {
	if o.Stderr != nil {
		return o.Stderr
	}
	return os.Stderr
}

// start starts a server. Its pid file is written when the addresses are bound, so that a process
// which has them keeps its own, and before anything is served.
func start(o nginx.Options) (*nginx.Server, error) {
	s, err := nginx.New(o)
	if err != nil {
		return nil, err
	}
	if err = s.Listen(); err == nil {
		err = writePIDFile(s.PIDFile())
	}
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// reload serves a new configuration. If it cannot be loaded or bound, the former one is kept, and
// the error is written to its log.
func reload(s *nginx.Server, _ <-chan os.Signal) {
	if err := s.Reload(); err != nil {
		emerg(s, err)
	}
}

// reopen reopens the log files after their rotation.
func reopen(s *nginx.Server, _ <-chan os.Signal) {
	if err := s.Reopen(); err != nil {
		emerg(s, syserror.Open(err))
	}
}

func emerg(s *nginx.Server, err error) {
	s.Logger().Log(context.Background(), nginx.LevelEmerg, err.Error())
}

// stop ends everything at once.
func stop(s *nginx.Server, _ <-chan os.Signal) { _ = s.Close() }

// quit ends the server when all requests and tunnels have ended. A signal to stop cuts that
// short.
func quit(s *nginx.Server, signals <-chan os.Signal) {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	go func() {
		for {
			select {
			case received := <-signals:
				if cuts(received) {
					cut()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	_ = s.Shutdown(ctx)
}
