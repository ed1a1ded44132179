//go:build unix

package command_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// dialUnix connects to a unix socket of the process's folder.
func (p *process) dialUnix(name string) *wiretest.Peer {
	p.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return wiretest.NewPeer(p.t, conn)
}

// getUnix is get over a unix socket.
func (p *process) getUnix(name string) string {
	p.t.Helper()
	client := p.dialUnix(name)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, body := client.Response("GET")
	client.Close()
	return body
}

// missing reports whether the process's folder has no such file.
func (p *process) missing(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name))
	return errors.Is(err, fs.ErrNotExist)
}

// Every user may connect to a unix socket, and its file is removed when the server ends.
func TestUnixSocket(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		p := startProcess(t, "server { listen unix:DIR/s; listen ADDRESS; return 200 $remote_addr; }")
		if got := p.getUnix("s"); got != "unix:" {
			t.Errorf("got %q", got)
		}
		info, err := os.Stat(filepath.Join(p.dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got != fs.ModeSocket|0o666 {
			t.Errorf("the file's mode is %v", got)
		}
		p.signal(s)
		p.ended()
		if !p.missing("s") {
			t.Errorf("%v left the socket's file", s)
		}
	}
}

// Reloads keep a unix socket and its file: no connection is refused meanwhile, and none is lost.
func TestReloadKeepsUnixSocket(t *testing.T) {
	p := startProcess(t, "server { listen unix:DIR/s; listen ADDRESS; return 200 old; }")
	before, err := os.Stat(filepath.Join(p.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	early := p.dialUnix("s")
	if got := p.getUnix("s"); got != "old" { // connected later, so the first connection has been accepted too
		t.Errorf("got %q", got)
	}
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
				if got := p.getUnix("s"); got != "old" && got != "new" {
					t.Errorf("got %q", got)
					return
				}
			}
		})
	}
	p.write("server { listen unix:DIR/s; listen ADDRESS; return 200 new; }")
	for i := range 10 {
		p.signal(syscall.SIGHUP)
		p.eventually("took the signal", func() bool {
			return strings.Count(p.file("error.log"), "signal 1 (SIGHUP) received, reconfiguring") == i+1
		})
	}
	p.eventually("served the new configuration", func() bool { return p.getUnix("s") == "new" })
	close(stop)
	clients.Wait()
	early.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := early.Response("GET"); body != "old" {
		t.Errorf("the client that had connected before got %q", body)
	}
	if after, err := os.Stat(filepath.Join(p.dir, "s")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket's file is another one: %v", err)
	}
	p.signal(syscall.SIGQUIT)
	p.ended()
}

// A unix socket that the new configuration does not have is closed and its file removed.
func TestReloadMovesUnixSocket(t *testing.T) {
	p := startProcess(t, "server { listen unix:DIR/old; listen ADDRESS; return 200 old; }")
	p.write("server { listen unix:DIR/new; listen ADDRESS; return 200 new; }")
	p.signal(syscall.SIGHUP)
	p.eventually("moved", func() bool { return p.missing("old") })
	if got := p.getUnix("new"); got != "new" {
		t.Errorf("got %q", got)
	}
	if want := "[warn] "; !strings.Contains(p.file("error.log"), want) || !strings.Contains(p.file("error.log"), "deleting socket "+filepath.Join(p.dir, "old")+"\n") {
		t.Errorf("the error log has nothing of it: %s", p.file("error.log"))
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}

// A file in a socket's place is left alone, whether a process listens on it or a killed one has
// left it, and a reload that finds one changes nothing.
func TestUnixSocketInUse(t *testing.T) {
	dir := write(t, nil)
	busy := filepath.Join(dir, "busy")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: busy})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	printed := "bind() to unix:" + busy + " failed (98: Address already in use)\n"
	conf := "events {}\nhttp { server { listen unix:" + dir + "/free; listen unix:" + busy + "; } }\n"
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := run("-p", dir, "-c", "nginx.conf"); status != 1 || stdout != "" || stderr != "nginx: [emerg] "+printed {
		t.Errorf("status %d, printed %q %q, want %q", status, stdout, stderr, printed)
	}
	if _, err := os.Lstat(busy); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "free")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket that could be bound: %v", err)
	}

	p := startProcess(t, "server { listen unix:DIR/s; listen ADDRESS; return 200 old; }")
	p.write("server { listen unix:" + busy + "; listen ADDRESS; return 200 new; }")
	p.signal(syscall.SIGHUP)
	p.eventually("logged the error", func() bool { return strings.Contains(p.file("error.log"), printed) })
	if got := p.getUnix("s"); got != "old" {
		t.Errorf("got %q", got)
	}
	p.signal(syscall.SIGTERM)
	p.ended()
}
