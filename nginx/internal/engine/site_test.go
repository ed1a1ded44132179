package engine_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx/internal/engine"
	front "github.com/culvert-go/culvert/server"
)

// site is a loaded configuration that is being served.
type site struct {
	t      *testing.T
	dir    string
	engine *engine.Engine
	errors *wiretest.Log
	addrs  map[string]string // where each listener of the configuration is served
	first  string
}

// write puts files into a fresh directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load loads nginx.conf of files.
func load(t *testing.T, files map[string]string) (*site, error) {
	t.Helper()
	return loadAfter(t, nil, files)
}

// loadAfter loads nginx.conf of files to replace a configuration.
func loadAfter(t *testing.T, before *engine.Engine, files map[string]string) (*site, error) {
	t.Helper()
	return loadWith(t, engine.LoadOptions{Before: before}, files)
}

// loadWith loads nginx.conf of files with further options.
func loadWith(t *testing.T, o engine.LoadOptions, files map[string]string) (*site, error) {
	t.Helper()
	s := &site{t: t, dir: write(t, files), errors: &wiretest.Log{}, addrs: map[string]string{}}
	o.Prefix, o.File, o.Stderr = s.dir, "nginx.conf", s.errors
	e, err := engine.Load(o)
	if err != nil {
		return nil, err
	}
	s.engine = e
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, nil
}

// serve loads nginx.conf of files and serves it on free ports, regardless of the ports that it
// names, and on unix sockets in its directory.
func serve(t *testing.T, files map[string]string) *site {
	t.Helper()
	s, err := load(t, files)
	if err != nil {
		t.Fatal(err)
	}
	s.serve()
	return s
}

// reload serves files on other ports, as a configuration that replaces that of s.
func reload(t *testing.T, s *site, files map[string]string) *site {
	t.Helper()
	after, err := loadAfter(t, s.engine, files)
	if err != nil {
		t.Fatal(err)
	}
	after.serve()
	return after
}

func (s *site) serve() {
	t := s.t
	t.Helper()
	for _, l := range s.engine.Listeners() {
		network, address := "tcp", "127.0.0.1:0"
		if l.Network == "unix" {
			network, address = "unix", filepath.Join(s.dir, l.Address)
		}
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		server := &front.Server{Handler: l.Handler, TLSConfig: l.TLS, ConnContext: l.ConnContext, ConnState: l.ConnState,
			MaxHeaderBytes: l.MaxHeaderBytes, ReadHeaderTimeout: l.ReadHeaderTimeout, KeepFieldNames: true,
			OnRefused: func(w http.ResponseWriter, r *front.Refusal) { l.Handler.ServeHTTP(w, engine.RefusedRequest(r)) }}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if l.TLS != nil {
				_ = server.ServeTLS(ln, "", "")
			} else {
				_ = server.Serve(ln)
			}
		}()
		t.Cleanup(func() {
			server.Close()
			<-done
		})
		s.addrs[l.Address] = ln.Addr().String()
		if s.first == "" {
			s.first = ln.Addr().String()
		}
	}
}

// server wraps directives of a server block.
func server(directives string) map[string]string {
	return map[string]string{"nginx.conf": "events {}\nhttp {\nserver {\n" + directives + "\n}\n}\n"}
}

// with adds files.
func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// response is a whole response.
type response struct {
	*http.Response
	body string
}

// send writes a raw request to the first listener and reads one response.
func (s *site) send(raw string) response {
	s.t.Helper()
	return sendTo(s.t, s.first, raw)
}

func sendTo(t *testing.T, addr, raw string) response {
	t.Helper()
	network := "tcp"
	if filepath.IsAbs(addr) {
		network = "unix"
	}
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("response to %q: %v", raw, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("body of the response to %q: %v", raw, err)
	}
	return response{resp, string(body)}
}

// get sends a GET for an unchanged target, with further header fields.
func (s *site) get(target string, fields ...string) response {
	s.t.Helper()
	return s.request("GET", target, fields...)
}

func (s *site) request(method, target string, fields ...string) response {
	s.t.Helper()
	host := "Host: localhost"
	for _, f := range fields {
		if strings.HasPrefix(f, "Host:") {
			host = ""
		}
	}
	raw := method + " " + target + " HTTP/1.1\r\n"
	for _, f := range append(fields, host, "Connection: close") {
		if f != "" {
			raw += f + "\r\n"
		}
	}
	return s.send(raw + "\r\n")
}

func (s *site) file(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
