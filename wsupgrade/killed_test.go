package wsupgrade_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Ten thousand tunnels (300 in a quick run) end in every possible way, some after their handler has
// returned, some in the middle of a frame, and none leaves anything behind: no goroutine, no
// descriptor, no admission in the registry.
func TestTunnelsKilledInEveryWay(t *testing.T) {
	leaktest.Check(t)
	const atATime = 50
	tunnels := wiretest.Size(10000, 300)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		header := p.Header()
		p.Send(switching)
		if _, err := p.R.Peek(1); err != nil {
			return
		}
		switch {
		case strings.Contains(header, "/target-fin"):
			return
		case strings.Contains(header, "/target-rst"):
			p.Reset()
			return
		}
		_, _ = io.Copy(struct{ io.Writer }{p.Conn}, p.R)
	})
	registries, forwarders := map[string]*wsupgrade.Registry{}, map[string]*wsupgrade.Forwarder{}
	for _, way := range ways {
		o := wsupgrade.Options{Registry: registry(t, wsupgrade.RegistryOptions{})}
		if way == "idle" {
			o.IdleTimeout = 20 * time.Millisecond
		}
		registries[way], forwarders[way] = o.Registry, forwarder(t, o)
	}
	addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		way, detached := strings.CutSuffix(r.URL.Path[1:], "-detached")
		if detached {
			_, _ = forwarders[way].Start(w, r, outboundTo(r, target), nil)
			return
		}
		_, _ = forwarders[way].Forward(w, r, outboundTo(r, target))
	}))
	stop := endAll(map[*wsupgrade.Registry]func(*wsupgrade.Tunnel){
		registries["closed"]:  func(tunnel *wsupgrade.Tunnel) { tunnel.Close(wsupgrade.GoingAway, "") },
		registries["aborted"]: (*wsupgrade.Tunnel).Abort,
	})
	work := make(chan int)
	var clients sync.WaitGroup
	for range atATime {
		clients.Go(func() {
			for i := range work {
				kill(t, addr, ways[i%len(ways)], []string{"", "-detached"}[i/len(ways)%2], i%3 == 0)
			}
		})
	}
	for i := range tunnels {
		work <- i
	}
	close(work)
	clients.Wait()
	stop()
	for way, r := range registries {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := r.Drain(ctx, wsupgrade.GoingAway); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		cancel()
	}
}

var ways = []string{"client-fin", "client-rst", "target-fin", "target-rst", "idle", "closed", "aborted"}

// endAll ends every tunnel of the registries until stop is called.
func endAll(how map[*wsupgrade.Registry]func(*wsupgrade.Tunnel)) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	for r, end := range how {
		running.Go(func() {
			for {
				for tunnel := range r.All() {
					end(tunnel)
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	return func() {
		close(done)
		running.Wait()
	}
}

// kill opens a tunnel, sends a frame or a part of one, and waits for the end.
func kill(t *testing.T, addr, way, mode string, midFrame bool) {
	p := wiretest.Dial(t, addr)
	defer p.Close()
	p.Send(strings.Replace(handshake, "/chat", "/"+way+mode, 1))
	p.Header()
	sent := masked(text, "hello")
	if midFrame && way != "idle" && way != "closed" { // which wait for the frame's end
		sent = sent[:len(sent)-2]
	}
	_, _ = io.WriteString(p, sent)
	switch way {
	case "client-fin":
		_ = p.Conn.(*net.TCPConn).CloseWrite()
	case "client-rst":
		p.Reset()
		return
	}
	for buf := make([]byte, 64); ; {
		n, err := p.R.Read(buf)
		if err != nil {
			return
		}
		if i := bytes.IndexByte(buf[:n], closing); i >= 0 {
			_, _ = io.WriteString(p, masked(closing, "\x03\xe9"))
		}
	}
}
