// Package peers starts what the programs of package authors are tested with: redis-server,
// Debian's nginx, servers with certificates, and the programs themselves.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Program runs a program until the test ends, or until stop is called, which ends its context and returns its error. run
// calls ready with the address on which it listens.
func Program(t testing.TB, run func(ctx context.Context, ready func(net.Addr)) error) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening := make(chan net.Addr, 1)
	ended := make(chan struct{})
	var failure error
	go func() {
		defer close(ended)
		failure = run(ctx, func(a net.Addr) { listening <- a })
	}()
	stop = func() error {
		cancel()
		<-ended
		return failure
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the program ended with: %v", err)
		}
	})
	select {
	case a := <-listening:
		return a.String(), stop
	case <-ended:
		t.Fatalf("the program did not start: %v", failure)
		return "", nil
	}
}

// Serve serves h on loopback until the test ends.
func Serve(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// ServeTLS is Serve with TLS. The certificate is written to the file roots, in PEM.
func ServeTLS(t testing.TB, h http.Handler) (s *httptest.Server, roots string) {
	s = httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s, writePEM(t, s.Certificate().Raw)
}

// Redis starts redis-server on a unix socket and returns its URL for redis.ParseURL.
func Redis(t testing.TB) (url string, stop func()) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "redis.sock")
	stop = start(t, "to accept connections", exec.Command("redis-server",
		"--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(socket)))
	return "unix://" + socket, stop
}

// Nginx starts Debian's nginx with one server, which listens on the address that is returned. http is what is in the http
// block, server what is in the server block; $folder in either is a folder of its own.
func Nginx(t testing.TB, http, server string) (addr string) {
	t.Helper()
	folder := shortDir(t)
	if err := os.Chmod(folder, 0o755); err != nil { // the worker may be another user
		t.Fatal(err)
	}
	// nginx takes over a socket that listens already: so no other process can have the port, and a connection that is made
	// before nginx runs waits for it.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	addr = listener.Addr().String()
	conf := strings.ReplaceAll(fmt.Sprintf(`
daemon off; worker_processes 1; pid $folder/pid; error_log stderr notice;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
	uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
	%s
	server { listen %s; %s }
}`, http, addr, server), "$folder", folder)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("nginx", "-p", folder, "-e", "stderr", "-c", file)
	command.Env = append(os.Environ(), "NGINX=3;")
	command.ExtraFiles = []*os.File{socket}
	start(t, "start worker process", command)
	return addr
}

// start starts a command, and returns when it has written ready. It ends with the test, or by stop.
func start(t testing.TB, ready string, command *exec.Cmd) (stop func()) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	isReady, ended := make(chan struct{}), make(chan struct{})
	var output bytes.Buffer
	go func() {
		defer close(ended)
		defer reader.Close()
		once := sync.OnceFunc(func() { close(isReady) })
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			fmt.Fprintln(&output, lines.Text())
			if strings.Contains(lines.Text(), ready) {
				once()
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // nginx's worker outlives a master that is killed
		<-ended
		_ = command.Wait()
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s:\n%s", command.Path, output.String())
		}
	})
	select {
	case <-isReady:
	case <-ended:
		t.Fatalf("%s ended:\n%s", command.Path, output.String())
	}
	return stop
}

// shortDir returns a folder with a name that is short enough for unix sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "authors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
