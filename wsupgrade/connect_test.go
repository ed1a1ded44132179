package wsupgrade_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// connecting serves Connect, which lets clients reach target as db:5432 and nothing else.
func connecting(t *testing.T, target string, o wsupgrade.Options) http.Handler {
	t.Helper()
	h, err := forwarder(t, o).Connect(func(r *http.Request) (string, error) {
		switch r.Host {
		case "db:5432":
			return target, nil
		}
		return "", errors.New("not on the list")
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What the client sends after its CONNECT is delivered, and so are the last bytes of a target whose
// client has ended.
func TestConnect(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Send("hello ")
		p.Send("heard " + p.Rest())
	})
	r := registry(t, wsupgrade.RegistryOptions{})
	p := wiretest.Dial(t, wiretest.Serve(t, connecting(t, target, wsupgrade.Options{Registry: r})))
	p.Send("CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\nearly ")
	p.Receive("HTTP/1.1 200 Connection Established\r\n\r\nhello ")
	listed(t, r, 1)
	if tunnel := only(t, r); tunnel.Protocol != "connect" || tunnel.Target != target {
		t.Errorf("tunnel %+v", tunnel)
	}
	p.Send("late")
	p.End()
	if got := p.Rest(); got != "heard early late" {
		t.Errorf("got %q", got)
	}
}

// Filters see the status of a CONNECT that is a tunnel, and the client the fields that they set.
func TestConnectThroughFilters(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) { p.Send("heard " + p.Rest()) })
	stats := make(chan culvert.ResponseStats, 1)
	result := new(culvert.Result)
	seen := filters.OnResponse(filters.ResponseHooks{
		Header: func(_ *http.Request, status int, h http.Header) {
			if status != http.StatusOK {
				t.Errorf("the filter saw %d", status)
			}
			h.Set("X-A", "b")
			h.Set("Content-Length", "1")
		},
		End: func(_ *http.Request, s culvert.ResponseStats) { stats <- s },
	})
	inner := connecting(t, target, wsupgrade.Options{})
	handler := filters.NewChain(seen).ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, recorded := filters.WithResult(r.Context())
		inner.ServeHTTP(w, r.WithContext(ctx))
		*result = *recorded
	})
	p := wiretest.Dial(t, wiretest.Serve(t, handler))
	p.Send("CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\nwords")
	p.Receive("HTTP/1.1 200 Connection Established\r\nX-A: b\r\n\r\n")
	p.End()
	if got := p.Rest(); got != "heard words" {
		t.Errorf("got %q", got)
	}
	if s := <-stats; s.Status != http.StatusOK || !s.Hijacked {
		t.Errorf("stats %+v", s)
	}
	if result.BytesIn != 5 || result.BytesOut != 11 {
		t.Errorf("result %+v", result)
	}
}

func TestConnectOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) { p.Send("heard " + p.Rest()) })
	c := dialH2(t, serveH2(t, connecting(t, target, wsupgrade.Options{})))
	id := c.open(false, ":method CONNECT", ":authority db:5432")
	if status, _ := c.status(id); status != "200" {
		t.Errorf("status %s", status)
	}
	c.check(c.WriteData(id, true, []byte("words")))
	if got := c.data(id, 11); got != "heard words" {
		t.Errorf("got %q", got)
	}
	c.ended(id)
}

func TestConnectIsRefused(t *testing.T) {
	leaktest.Check(t)
	addr := wiretest.Serve(t, connecting(t, wiretest.Unused(t), wsupgrade.Options{}))
	for request, want := range map[string]int{
		"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n": 403,
		"CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n":                       502,
		"GET / HTTP/1.1\r\nHost: db:5432\r\n\r\n":                                 405,
	} {
		p := wiretest.Dial(t, addr)
		p.Send(request)
		p.Status(want)
	}
	if h, err := forwarder(t, wsupgrade.Options{}).Connect(nil); h != nil || err == nil {
		t.Error("Connect without allow returned no error")
	}
}
