package proxy

import (
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/wsupgrade"
)

// upgradeExchange forwards an upgrade and blocks until its tunnel has ended.
type upgradeExchange struct{ upgrades *wsupgrade.Forwarder }

func (e upgradeExchange) exchange(f *forwarding) (answered, *fault.Error) {
	h := f.w.Header()
	before := h["Set-Cookie"]
	if cookie := f.lease.Cookie(f.out.In); cookie != nil {
		h["Set-Cookie"] = append(before[:len(before):len(before)], cookie.String())
	}
	status, err := e.upgrades.Forward(f.w, f.out.In, f.out.Out)
	failure := fault.As(err)
	if failure != nil && !failure.HeadSent {
		h["Set-Cookie"] = before // the cookie is this target's
		if before == nil {
			delete(h, "Set-Cookie")
		}
	}
	return answered{status: status, after: time.Since(f.started)}, failure
}
