package upstream

import "fmt"

// SetDrained takes the target with the address addr (Target.Addr) out of the group, or puts it back if drained is
// false. Like one that is Down, a drained target gets no further requests and no checks; the requests and tunnels that
// it has continue, and Status.InFlight is 0 when they have ended. Group.Set and the lists of Options.Source do not
// change that, and it is kept, as health is, if the address is removed and added again within ten minutes. If all
// targets are drained, requests are refused (503).
//
// SetDrained returns an error if the group has no such target.
func (g *Group) SetDrained(addr string, drained bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	found, changed := false, false
	var list []Target
	for _, m := range g.set.Load().members {
		if m.Addr == addr {
			found, changed = true, changed || m.state.drained != drained
		}
		list = append(list, m.Target)
	}
	if !found {
		return fmt.Errorf("upstream %q: no target %q", g.o.Name, addr)
	}
	if changed {
		for _, m := range g.set.Load().members {
			if m.Addr == addr {
				m.state.drained = drained
			}
		}
		g.install(list)
	}
	return nil
}
