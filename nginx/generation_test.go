package nginx

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// retire returns the client of a kept connection to a configuration that is replaced just now, and a channel that is
// closed when the configuration has ended. It is called in a bubble.
func retire(t *testing.T) (client *wiretest.Peer, ended chan struct{}) {
	s, err := New(Options{Prefix: t.TempDir(), File: "f", Stderr: io.Discard, ReadFile: func(string) ([]byte, error) {
		return []byte(`events {} http { access_log off; server { location / { return 200 "here"; } } }`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	g := s.current.Load()
	server := g.newServer(g.engine.Listeners()[0])
	g.servers = append(g.servers, server)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	_ = server.Serve(wiretest.OneConn(far)) // the connection is served on
	client = wiretest.NewPeer(t, near)
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, body := client.Response("GET"); resp.Close || body != "here" {
		t.Errorf("the first response is %q, and ends the connection: %t", body, resp.Close)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		g.finish(t.Context())
	}()
	synctest.Wait()
	return client, ended
}

// A request that crosses a reload on a kept connection gets a response, which announces the connection's end to the client.
func TestReloadUnderAKeptConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, ended := retire(t)
		time.Sleep(idleGrace / 2)
		client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
		if resp, body := client.Response("POST"); !resp.Close || body != "here" {
			t.Errorf("the response is %q, and ends the connection: %t", body, resp.Close)
		}
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the configuration has not ended with its last connection")
		}
	})
}

// A connection that remains idle is closed in the end.
func TestReloadUnderAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		client, ended := retire(t)
		if rest := client.Rest(); strings.TrimSpace(rest) != "" {
			t.Errorf("received %q", rest)
		}
		<-ended
		if took := time.Since(start); took < idleGrace || took > idleGrace+5*time.Second { // net/http polls
			t.Errorf("the connection was closed after %v", took)
		}
	})
}
