//go:build unix

package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/command"
)

// asNginx makes this test binary the program itself: signals need a process of their own.
const asNginx = "CULVERT_TEST_AS_NGINX"

func TestMain(m *testing.M) {
	if os.Getenv(asNginx) != "" {
		program := nginx.Options{Handlers: map[string]http.Handler{"stuck": http.HandlerFunc(stuck)}}
		os.Exit(command.RunWith(program, os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// stuck is a handler that never returns, and has told its client so.
func stuck(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusEarlyHints)
	select {}
}

// process is a running server of the configuration nginx.conf in dir.
type process struct {
	t       *testing.T
	dir     string
	address string
	cmd     *exec.Cmd
	output  bytes.Buffer // read it after the end only
	done    chan error
}

// conf completes a configuration: an events block, a pid file and http around the servers, in
// which ADDRESS is replaced by the server's and DIR by the folder.
func (p *process) conf(http string) string {
	return "pid nginx.pid;\nerror_log error.log notice;\nevents {}\nhttp { access_log access.log;\n" + http + "\n}\n"
}

// write writes a configuration around the servers.
func (p *process) write(http string) { p.t.Helper(); p.writeFile(p.conf(http)) }

// writeFile writes a whole configuration.
func (p *process) writeFile(text string) {
	p.t.Helper()
	text = strings.NewReplacer("ADDRESS", p.address, "DIR", p.dir).Replace(text)
	if err := os.WriteFile(filepath.Join(p.dir, "nginx.conf"), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// startProcess runs the program on a free port and waits until it accepts.
func startProcess(t *testing.T, http string) *process {
	t.Helper()
	return startProcessOf(t, (*process)(nil).conf(http))
}

// startProcessOf is startProcess for a whole configuration.
func startProcessOf(t *testing.T, text string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: t.TempDir(), address: wiretest.Free(t), done: make(chan error, 1)}
	p.writeFile(text)
	p.cmd = exec.Command(exe, "-p", p.dir, "-c", "nginx.conf")
	p.cmd.Env = append(os.Environ(), asNginx+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.eventually("listens", func() bool {
		conn, err := net.Dial("tcp", p.address)
		return err == nil && conn.Close() == nil
	})
	return p
}

// eventually waits until another process has done something.
func (p *process) eventually(what string, done func() bool) {
	p.t.Helper()
	for range 6000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.t.Fatalf("it never %s\n%s", what, p.file("error.log"))
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for the end, and checks the exit status, the pid file and that the address is free
// again.
func (p *process) ended() {
	p.t.Helper()
	if err := wiretest.Await(p.t, p.done, "end of the process"); err != nil {
		p.t.Errorf("ended with %v\n%s", err, p.output.String())
	}
	if _, err := os.Stat(filepath.Join(p.dir, "nginx.pid")); !errors.Is(err, os.ErrNotExist) {
		p.t.Errorf("the pid file: %v", err)
	}
	if conn, err := net.Dial("tcp", p.address); err == nil {
		conn.Close()
		p.t.Error("the address still accepts")
	}
}

func (p *process) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(p.dir, name))
	return string(content)
}

// get sends a request on a connection of its own.
func (p *process) get(path string) string {
	p.t.Helper()
	client := wiretest.Dial(p.t, p.address)
	client.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, body := client.Response("GET")
	client.Close()
	return body
}

func TestStop(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		p := startProcess(t, "server { listen ADDRESS; location / { return 200 ok; } }")
		if got := p.get("/"); got != "ok" {
			t.Errorf("got %q", got)
		}
		if got, want := p.file("nginx.pid"), fmt.Sprintf("%d\n", p.cmd.Process.Pid); got != want {
			t.Errorf("pid file %q, want %q", got, want)
		}
		p.signal(s)
		p.ended()
	}
}

// slow is a target that signals each request on received and sends its response after release was called, or at the test's end.
func slow(t *testing.T) (addr string, received chan struct{}, release func()) {
	received, released := make(chan struct{}, 8), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	addr = wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			if _, err := p.R.Peek(1); err != nil {
				return
			}
			p.Header()
			received <- struct{}{}
			<-released
			p.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow")
		}
	})
	t.Cleanup(release) // before the target's end is waited for
	return addr, received, release
}

// QUIT stops accepting connections, and ends when running requests have ended.
func TestQuitFinishesRequests(t *testing.T) {
	app, received, release := slow(t)
	p := startProcess(t, "server { listen ADDRESS; location / { proxy_pass http://"+app+"; } }")
	client := wiretest.Dial(t, p.address)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, received, "request")
	p.signal(syscall.SIGQUIT)
	p.eventually("stopped listening", func() bool {
		conn, err := net.Dial("tcp", p.address)
		return err != nil || conn.Close() != nil
	})
	release()
	if _, body := client.Response("GET"); body != "slow" {
		t.Errorf("the request that was in flight got %q", body)
	}
	p.ended()
}

// TERM does not wait, even after a QUIT that waits.
func TestTermCutsRequests(t *testing.T) {
	for _, first := range []os.Signal{syscall.SIGTERM, syscall.SIGQUIT} {
		app, received, release := slow(t)
		p := startProcess(t, "server { listen ADDRESS; location / { proxy_pass http://"+app+"; } }")
		client := wiretest.Dial(t, p.address)
		client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		wiretest.Await(t, received, "request")
		p.signal(first)
		if first == syscall.SIGQUIT {
			p.eventually("logged that", func() bool {
				return strings.Contains(p.file("error.log"), "signal 3 (SIGQUIT) received, shutting down")
			})
			p.signal(syscall.SIGTERM)
		}
		if got := client.Ended(); strings.Contains(got, "slow") {
			t.Errorf("the client received %q", got)
		}
		p.ended()
		release()
	}
}

// A handler that does not return is waited for a short time only, and not at all at a second signal.
func TestStopOfStuckHandlers(t *testing.T) {
	for _, test := range []struct {
		signals []os.Signal
		logs    string
	}{
		{[]os.Signal{syscall.SIGTERM}, "handlers have not returned 5s after their requests were cut, exiting"},
		{[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, "handlers have not returned at another signal to stop, exiting"},
		{[]os.Signal{syscall.SIGQUIT, syscall.SIGINT}, "handlers have not returned 5s after their requests were cut, exiting"},
		{[]os.Signal{syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT}, "handlers have not returned at another signal to stop, exiting"},
	} {
		t.Run(fmt.Sprint(test.signals), func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, "server { listen ADDRESS; location / { culvert_handler stuck; } }")
			client := wiretest.Dial(t, p.address)
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Receive("HTTP/1.1 103 ")
			for i, s := range test.signals {
				p.signal(s)
				if i < len(test.signals)-1 {
					p.eventually("stopped listening", func() bool {
						conn, err := net.Dial("tcp", p.address)
						return err != nil || conn.Close() != nil
					})
				}
			}
			p.ended()
			if log := p.file("error.log"); !strings.Contains(log, test.logs) {
				t.Errorf("the log lacks %q:\n%s", test.logs, log)
			}
		})
	}
}

// HUP serves the new configuration on the existing sockets; a running request and tunnel continue
// under the old one.
func TestReload(t *testing.T) {
	app, received, release := slow(t)
	const upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	socket := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(upgraded)
		p.Receive("after the reload")
		p.Send("heard")
		p.Ended()
	})
	old := "server { listen ADDRESS; location /version { return 200 old; } location /slow { proxy_pass http://" + app + "; }\n" +
		"location /socket { proxy_pass http://" + socket + "; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } }"
	p := startProcess(t, old)

	request := wiretest.Dial(t, p.address)
	request.Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, received, "request")
	tunnel := wiretest.Dial(t, p.address)
	tunnel.Send("GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	tunnel.Receive("HTTP/1.1 101 ")
	tunnel.Header()

	p.write("server { listen ADDRESS; location /version { return 200 new; } }")
	p.signal(syscall.SIGHUP)
	p.eventually("served the new configuration", func() bool { return p.get("/version") == "new" })
	release()
	if _, body := request.Response("GET"); body != "slow" {
		t.Errorf("the request that was in flight got %q", body)
	}
	tunnel.Send("after the reload")
	tunnel.Receive("heard")
	tunnel.Close()
	p.signal(syscall.SIGQUIT)
	p.ended()
}

// No request is lost during successive reloads.
func TestReloadsUnderLoad(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 generation; }")
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := p.get("/"); got != "generation" {
					t.Errorf("got %q", got)
					return
				}
			}
		})
	}
	for i := range 20 {
		p.signal(syscall.SIGHUP)
		p.eventually("took the signal", func() bool {
			return strings.Count(p.file("error.log"), "signal 1 (SIGHUP) received, reconfiguring") == i+1
		})
	}
	close(stop)
	clients.Wait()
	p.signal(syscall.SIGQUIT)
	p.ended()
}

// A client that has connected but sent no request yet gets its response after a reload, too:
// http.Server.Shutdown alone would close its connection.
func TestReloadBeforeFirstRequest(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 old; }")
	client := wiretest.Dial(t, p.address)
	if got := p.get("/"); got != "old" { // connected later, so the first connection has been accepted too
		t.Errorf("got %q", got)
	}
	p.write("server { listen ADDRESS; return 200 new; }")
	p.signal(syscall.SIGHUP)
	p.eventually("served the new configuration", func() bool { return p.get("/") == "new" })
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := client.Response("GET"); body != "old" {
		t.Errorf("got %q", body)
	}
	client.Ended()
	p.signal(syscall.SIGQUIT)
	p.ended()
}

// A configuration that can't be loaded, or bound, keeps the old one in place.
func TestReloadOfBadConfiguration(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 old; }")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for http, want := range map[string]string{
		"server { listen ADDRESS; frobnicate on; }":                        `unknown directive "frobnicate" in ` + filepath.Join(p.dir, "nginx.conf") + ":5",
		"server { listen ADDRESS; listen " + taken.Addr().String() + "; }": "bind() to " + taken.Addr().String() + " failed (98: Address already in use)",
	} {
		p.write(http)
		p.signal(syscall.SIGHUP)
		p.eventually("logged the error", func() bool {
			return strings.Contains(p.file("error.log"), "#"+fmt.Sprint(p.cmd.Process.Pid)+": "+want+"\n") && strings.Contains(p.file("error.log"), "[emerg]")
		})
		if got := p.get("/"); got != "old" {
			t.Errorf("got %q", got)
		}
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}

// A listener that the new configuration does not have is closed, a new one is open.
func TestReloadMovesListener(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 old; }")
	before, after := p.address, wiretest.Free(t)
	p.address = after
	p.write("server { listen ADDRESS; return 200 new; }")
	p.signal(syscall.SIGHUP)
	p.eventually("moved", func() bool {
		conn, err := net.Dial("tcp", before)
		return err != nil || conn.Close() != nil
	})
	if got := p.get("/"); got != "new" {
		t.Errorf("got %q", got)
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}

// USR1 reopens the log files after they were moved away.
func TestReopen(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 ok; }")
	p.get("/first")
	log := filepath.Join(p.dir, "access.log")
	p.eventually("logged", func() bool { return strings.Contains(p.file("access.log"), "GET /first ") })
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR1)
	// The new file exists a moment before lines are written to it.
	p.eventually("reopened the log", func() bool { p.get("/probe"); return strings.Contains(p.file("access.log"), "GET /probe ") })
	p.get("/second")
	p.eventually("logged into the new file", func() bool { return strings.Contains(p.file("access.log"), "GET /second ") })
	if strings.Contains(p.file("access.log.1"), "/second") {
		t.Error("the old file got the second line as well")
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}

// -s sends signals to the process of the pid file.
func TestSignalOption(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 old; }")
	p.write("server { listen ADDRESS; return 200 new; }")
	send := func(name string) {
		t.Helper()
		if status, _, stderr := run("-p", p.dir, "-c", "nginx.conf", "-s", name); status != 0 || stderr != "" {
			t.Errorf("-s %s: status %d, %s", name, status, stderr)
		}
	}
	send("reload")
	p.eventually("served the new configuration", func() bool { return p.get("/") == "new" })
	send("reopen")
	p.eventually("took the signal", func() bool {
		return strings.Contains(p.file("error.log"), "signal 10 (SIGUSR1) received, reopening logs")
	})
	send("quit")
	p.ended()
}

func TestSignalOptionFails(t *testing.T) {
	const http = "events {}\nhttp { server { listen 127.0.0.1:1; } }\n"
	dir := write(t, map[string]string{
		"none.conf":    http,
		"missing.conf": "pid missing.pid;\n" + http,
		"text.conf":    "pid text.pid;\n" + http,
		"text.pid":     "soon\n",
		"bad.conf":     "frobnicate on;",
	})
	for file, want := range map[string]string{
		"none.conf":    `nginx: [error] the configuration has no "pid" directive`,
		"missing.conf": `nginx: [error] open() "` + filepath.Join(dir, "missing.pid") + `" failed (2: No such file or directory)`,
		"text.conf":    `nginx: [error] invalid PID number "soon" in "` + filepath.Join(dir, "text.pid") + `"`,
		"bad.conf":     `nginx: [emerg] unknown directive "frobnicate" in ` + filepath.Join(dir, "bad.conf") + `:1`,
	} {
		if status, _, stderr := run("-p", dir, "-c", file, "-s", "quit"); status != 1 || stderr != want+"\n" {
			t.Errorf("%s: status %d, printed %q, want %q", file, status, stderr, want)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().String()
	printed := "nginx: [emerg] bind() to " + busy + " failed (98: Address already in use)\n"

	dir := write(t, map[string]string{"nginx.conf": "events {}\nhttp { server { listen " + busy + "; } }\n"})
	if status, stdout, stderr := run("-p", dir, "-c", "nginx.conf"); status != 1 || stdout != "" || stderr != printed {
		t.Errorf("status %d, printed %q %q, want %q", status, stdout, stderr, printed)
	}
}
