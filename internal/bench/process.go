package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	culvertserver "github.com/culvert-go/culvert/server"
)

// process is a running peer.
type process struct {
	address  string
	secure   bool // it speaks TLS
	cmd      *exec.Cmd
	end      func()         // signals it to end
	dir      string         // is removed afterwards, "" for none
	commands io.WriteCloser // its standard input, nil if it takes none
	report   *bufio.Reader  // what it says, nil for nothing
}

// usage is what a process has used in its life.
type usage struct {
	cpu    time.Duration // its processor time and that of the processes it waited for
	allocs uint64        // 0 where it is not known
}

// stop ends the process and returns what it has used.
func (p *process) stop() usage {
	p.end()
	var u usage
	if p.report != nil {
		line, _ := p.report.ReadString('\n')
		u.allocs, _ = strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	}
	_ = p.cmd.Wait() // how it ended doesn't matter, and that it has is what we wait for
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
	u.cpu = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	return u
}

// The variables by which a process of this program learns which handler to serve, and in front of
// what.
const (
	serveVariable  = "CULVERT_BENCH_SERVE"
	targetVariable = "CULVERT_BENCH_TARGET"
)

// startSelf runs this program again as the server that handlers knows by name.
// It prints its address, ends with its standard input, and prints how often it has
// allocated.
func startSelf(name, target string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveVariable+"="+name, targetVariable+"="+target)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, end: func() { stdin.Close() }, commands: stdin, report: bufio.NewReader(stdout)}
	p.secure = strings.HasSuffix(name, secureSuffix)
	line, err := p.report.ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("the server ended before it listened: %w", err)
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

// serveIfAsked is the other end of startSelf.
func serveIfAsked() bool {
	name, set := os.LookupEnv(serveVariable)
	if !set {
		return false
	}
	if err := serve(name, os.Getenv(targetVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}

func serve(name, target string) error {
	stop, err := profile(name)
	if err != nil {
		return err
	}
	defer stop()
	defer func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.Mallocs)
	}()
	switch name {
	case relayName:
		return acceptAll(relay(target))
	case echoName:
		return acceptAll(echo)
	case fastName:
		return serveFast(target)
	case heldName:
		return serveHeld(target)
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(name, clientsName)); err == nil {
		serveClients(n, target)
		return nil
	}
	plain, secure := strings.CutSuffix(name, secureSuffix)
	newHandler, ok := handlers[plain]
	if !ok {
		return fmt.Errorf("no handler %q", name)
	}
	handler, err := newHandler(target)
	if err != nil {
		return err
	}
	return serveHTTP(handler, ownServer[plain], secure, nil)
}

// serveHTTP prints its address and serves until standard input ends.
func serveHTTP(handler http.Handler, own, secure bool, commands map[string]func() string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	var server interface {
		Serve(l net.Listener) error
		ServeTLS(l net.Listener, certFile, keyFile string) error
		Close() error
	}
	if own {
		server = &culvertserver.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: selfSigned()}
	} else {
		server = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, TLSConfig: selfSigned()}
	}
	go func() {
		obey(commands)
		server.Close()
	}()
	if secure {
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if err != http.ErrServerClosed {
		return err
	}
	return nil
}
