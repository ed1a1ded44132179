package nginx

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

const parkedConns = 20

// parked returns a server and its clients, whose connections are idle and have no goroutine any more. The configuration can
// be replaced.
func parked(t *testing.T) (s *Server, replace func(), clients []*wiretest.Peer) {
	t.Helper()
	leaktest.Check(t)
	addr := wiretest.Free(t)
	var version atomic.Value
	version.Store("first")
	s, err := New(Options{Prefix: t.TempDir(), File: "f", Stderr: io.Discard, ReadFile: func(string) ([]byte, error) {
		return []byte(`events {} http { access_log off; server { listen ` + addr + `; location / { return 200 ` + version.Load().(string) + `; } } }`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for range parkedConns {
		c := wiretest.Dial(t, addr)
		if got, kept := request(c); got != "first" || !kept {
			t.Fatalf("received %q, kept %t", got, kept)
		}
		clients = append(clients, c)
	}
	stacks := make([]byte, 1<<20)
	await(t, "connections to be parked", func() bool {
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "server.(*conn).serve")
	})
	replace = func() {
		version.Store("second")
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	return s, replace, clients
}

// request returns the content of a response, and whether the connection is kept.
func request(c *wiretest.Peer) (content string, kept bool) {
	c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, content := c.Response(http.MethodGet)
	return content, !resp.Close
}

// await waits until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// setGrace sets how long idle connections of a replaced configuration are kept.
func setGrace(t *testing.T, d time.Duration) {
	before := idleGrace
	idleGrace = d
	t.Cleanup(func() { idleGrace = before })
}

// A request on a parked connection gets a response behind a reload, by the configuration that the connection is of, and it is
// the connection's last one.
func TestReloadUnderParkedConnections(t *testing.T) {
	setGrace(t, time.Minute)
	s, replace, clients := parked(t)
	former := s.current.Load()
	replace()
	await(t, "the configuration to be retired", former.retired.Load)
	for _, c := range clients {
		if got, kept := request(c); got != "first" || kept {
			t.Errorf("received %q, kept %t", got, kept)
		}
		if rest := c.Ended(); rest != "" {
			t.Errorf("received %q behind it", rest)
		}
	}
	if got, kept := request(wiretest.Dial(t, clients[0].RemoteAddr().String())); got != "second" || !kept {
		t.Errorf("a new connection received %q, kept %t", got, kept)
	}
	s.old.Wait()
}

// Parked connections that are not used are closed behind a reload, and at the end, without a byte.
func TestParkedConnectionsEnd(t *testing.T) {
	setGrace(t, time.Millisecond)
	for name, end := range map[string]func(s *Server, replace func()) error{
		"Reload":   func(s *Server, replace func()) error { replace(); s.old.Wait(); return nil },
		"Shutdown": func(s *Server, _ func()) error { return s.Shutdown(t.Context()) },
		"Close":    func(s *Server, _ func()) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s, replace, clients := parked(t)
			if err := end(s, replace); err != nil {
				t.Error(err)
			}
			for _, c := range clients {
				if rest := c.Ended(); rest != "" {
					t.Errorf("received %q", rest)
				}
			}
		})
	}
}
