package proxy

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Target is one server of an upstream.
type Target struct {
	// Addr is the address to dial, "host:port".
	Addr string
	// Weight is the target's share of the requests; 0 means 1.
	Weight int
	// MaxFails is how many failed tries within FailTimeout take the target out
	// for FailTimeout. 0 means 1, a negative number switches the check off. The
	// only target of an upstream is never taken out.
	MaxFails int
	// FailTimeout is the time of MaxFails; 0 means 10 seconds.
	FailTimeout time.Duration
	// Backup targets are asked only when all others are down or failing.
	Backup bool
	// Down targets are never asked. Under IPHash they keep their place, so that
	// the clients of other targets stay where they are.
	Down bool
}

// withDefaults checks t and fills its defaults in.
func (t Target) withDefaults() (Target, error) {
	host, port, err := net.SplitHostPort(t.Addr)
	switch {
	case err != nil:
		return t, fmt.Errorf("target %q: %w", t.Addr, err)
	case host == "" || port == "":
		return t, fmt.Errorf("target %q: host and port are both needed", t.Addr)
	case t.Weight < 0:
		return t, fmt.Errorf("target %q: negative weight %d", t.Addr, t.Weight)
	case t.FailTimeout < 0:
		return t, fmt.Errorf("target %q: negative FailTimeout %v", t.Addr, t.FailTimeout)
	}
	if t.Weight == 0 {
		t.Weight = 1
	}
	if t.MaxFails == 0 {
		t.MaxFails = 1
	}
	if t.FailTimeout == 0 {
		t.FailTimeout = 10 * time.Second
	}
	return t, nil
}

// newPeers makes the picking state of the targets.
func newPeers(balance Balance, targets []Target) (*peers, error) {
	if balance != RoundRobin && balance != IPHash {
		return nil, fmt.Errorf("unknown balance %d", balance)
	}
	p := &peers{balance: balance}
	for _, t := range targets {
		t, err := t.withDefaults()
		if err != nil {
			return nil, err
		}
		if t.Backup && balance == IPHash {
			return nil, fmt.Errorf("target %q: a backup is not possible with IPHash", t.Addr)
		}
		group := &p.primary
		if t.Backup {
			group = &p.backup
		}
		group.peers = append(group.peers, &peer{Target: t, effective: t.Weight})
		group.total += t.Weight
	}
	if len(p.primary.peers) == 0 {
		return nil, errors.New("no target that is not a backup")
	}
	return p, nil
}
