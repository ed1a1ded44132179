package wsupgrade_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// logged captures what is logged to slog.Default until the test ends.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func logs(t *testing.T) *logged {
	l, before := new(logged), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// A panic of an Observer ends its WebSocket, at both ends with InternalError, and no other. Forward
// panics with it, where net/http or filters.Recover handles it. With Start it is logged, since no
// handler waits.
func TestPanicOfAnObserver(t *testing.T) {
	for name, observer := range map[string]wsupgrade.Observer{
		"Message": {Message: func(m *wsupgrade.Message) error {
			if string(m.Data) == "bug" {
				panic("a bug")
			}
			return nil
		}},
		"Frame": {Frame: func(f *wsupgrade.Frame) error {
			if string(f.Data) == "bug" {
				panic("a bug")
			}
			return nil
		}},
	} {
		for _, from := range []string{"client", "target"} {
			for _, detached := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " from the ", from, ", detached ", detached), func(t *testing.T) {
					leaktest.Check(t)
					log := logs(t)
					r := registry(t, wsupgrade.RegistryOptions{})
					o := observed(observer)
					o.Registry = r
					f := forwarder(t, o)
					target := wiretest.Target(t, func(p *wiretest.Peer) {
						respondToHandshake(p)
						if from == "target" {
							p.Send(frame(text, "bug"))
						}
						wantClose(t, p.R, wsupgrade.InternalError, "", true)
						p.Send(frame(closing, "\x03\xf3"))
						p.Ended()
					})
					panicked, ended := make(chan any, 1), make(chan struct{})
					addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						defer func() { panicked <- recover() }()
						startOrForward(f, detached, w, r, target, ended)
					}))
					client := open(t, addr)
					if from == "client" {
						client.Send(masked(text, "bug"))
					}
					wantClose(t, client.R, wsupgrade.InternalError, "", false)
					client.Send(masked(closing, "\x03\xf3"))
					client.Ended()
					wiretest.Await(t, ended, "end of the tunnel")
					want := map[bool]any{false: "a bug"}[detached]
					if got := wiretest.Await(t, panicked, "end of the handler"); got != want {
						t.Errorf("the handler panicked with %v, want %v", got, want)
					}
					if r.Len() != 0 {
						t.Errorf("%d tunnels", r.Len())
					}
					if got := strings.Count(log.String(), "a bug"); got != map[bool]int{true: 1}[detached] {
						t.Errorf("logged %d times: %s", got, log)
					}
				})
			}
		}
	}
}

// A panic of Start's ended is logged, and ends nothing else.
func TestPanicBehindATunnel(t *testing.T) {
	for _, o := range []wsupgrade.Options{{}, observed(wsupgrade.Observer{Message: func(*wsupgrade.Message) error { return nil }})} {
		t.Run(fmt.Sprint("observed ", o.Observe != nil), func(t *testing.T) {
			leaktest.Check(t)
			log := logs(t)
			f := forwarder(t, o)
			target := mirroring(t)
			called := make(chan struct{})
			addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = f.Start(w, r, outboundTo(r, target), func(*wsupgrade.Tunnel) { defer close(called); panic("a bug") })
			}))
			p := open(t, addr)
			p.Send(masked(closing, "\x03\xe8"))
			p.Conn.Close()
			wiretest.Await(t, called, "end of the tunnel")
			for end := time.Now().Add(time.Minute); !strings.Contains(log.String(), "a bug"); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("nothing is logged")
				}
			}
		})
	}
}
