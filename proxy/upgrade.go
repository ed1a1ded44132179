package proxy

import (
	"maps"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// upgradeExchange forwards an upgrade and blocks until its tunnel has ended, or only
// until it is open.
type upgradeExchange struct {
	upgrades *wsupgrade.Forwarder
	detach   bool
}

func (e upgradeExchange) exchange(f *forwarding) (exchangeResult, *culvert.Error) {
	if err := checkUpgrade(f.out.Out); err != nil {
		return exchangeResult{}, unsendable(f.out.In, err)
	}
	removeCookie := f.addCookie()
	out := f.out.Out
	if f.p.o.Upgrades != nil {
		out = out.WithContext(relay.WithDial(out.Context(), f.lease.Group().Dial, upstream.Dial))
	}
	if f.p.o.ModifyResponse != nil {
		out = out.WithContext(relay.WithModify(out.Context(), f.modify))
	}
	if f.p.o.KeepFieldNames {
		f.names.Request = f.out.FieldNames
		out = out.WithContext(fieldnames.WithUpgrade(out.Context(), &f.names))
	}
	f.replaced = false
	forward := e.upgrades.Forward
	if e.detach {
		forward = f.startTunnel
	}
	status, err := forward(f.client.Writer(), f.out.In, out)
	failure := errs.As(err)
	if failure != nil && !failure.HeaderSent {
		removeCookie() // it is this target's
	}
	after := f.record.TimeToHeader()
	return exchangeResult{status: status, after: after, waited: f.targetTime(after), detached: e.detach && failure == nil && f.opened(status)}, failure
}

// opened reports whether a target's response of the status has opened a tunnel.
func (f *forwarding) opened(status int) bool {
	return status == http.StatusSwitchingProtocols && !f.replaced
}

// checkUpgrade is http1.Check but for the pseudo-header of an extended CONNECT (RFC 8441), which wsupgrade
// takes for the protocol and does not send.
func checkUpgrade(out *http.Request) error {
	const pseudo = ":protocol"
	if out.Header[pseudo] == nil {
		return http1.Check(out)
	}
	handshake := *out
	handshake.Header = maps.Clone(out.Header)
	delete(handshake.Header, pseudo)
	return http1.Check(&handshake)
}

// startTunnel opens a tunnel that gives the target back at its end. It must not hold the
// request.
func (f *forwarding) startTunnel(w http.ResponseWriter, in, out *http.Request) (int, error) {
	lease, running, waited := f.lease, &f.p.running, new(time.Duration)
	f.record.KeepTargetTime(waited)
	running.Split()
	opened := false
	defer func() {
		if !opened { // also where a hook has panicked at the header
			running.Leave()
		}
	}()
	status, err := f.p.upgrades.Start(w, in, out, func(*wsupgrade.Tunnel) {
		lease.Done(upstream.Outcome{Status: http.StatusSwitchingProtocols, TimeToHeader: *waited})
		running.Leave()
	})
	opened = err == nil && f.opened(status)
	return status, err
}
