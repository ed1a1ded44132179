package wsupgrade_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// An Observer that ends its goroutine, as a test's FailNow does, ends its tunnel.
func TestGoexitOfAnObserver(t *testing.T) {
	for _, from := range []string{"client", "target"} {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprint("from the ", from, ", detached ", detached), func(t *testing.T) {
				leaktest.Check(t)
				r := registry(t, wsupgrade.RegistryOptions{})
				o := observed(wsupgrade.Observer{Message: func(m *wsupgrade.Message) error {
					if string(m.Data) == "bug" {
						runtime.Goexit()
					}
					return nil
				}})
				o.Registry = r
				f := forwarder(t, o)
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					respondToHandshake(p)
					if from == "target" {
						p.Send(frame(text, "bug"))
					}
					p.Ended()
				})
				ended := make(chan struct{})
				addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					startOrForward(f, detached, w, r, target, ended)
				}))
				client := open(t, addr)
				if from == "client" {
					client.Send(masked(text, "bug"))
				}
				client.Ended()
				wiretest.Await(t, ended, "end of the tunnel")
				if r.Len() != 0 {
					t.Errorf("%d tunnels", r.Len())
				}
			})
		}
	}
}
