package upstream

import (
	"fmt"
	"time"
)

// Target is one server of a group.
type Target struct {
	// Addr is the address to dial: "host:port", or "unix:/path" for a unix
	// socket. host is a name or an IP address, an IPv6 address in brackets; port is a
	// number from 1 to 65535.
	Addr string
	// Weight is the target's share of the requests; 0 means 1. The most is
	// 65535.
	Weight int
	// MaxFails is how many failures within FailTimeout take the target out. A
	// failure counts for FailTimeout, whatever succeeds in the meantime. A target
	// that is out gets no request until FailTimeout has passed since its last
	// failure, then one request: if that succeeds, or one that it still had, the
	// target is back and its failures are forgotten; if it fails, the target is
	// out for as long again; if it tells nothing, since its client has gone for
	// one, the next request is let through after FailTimeout.
	//
	// These are the states of nginx's max_fails, which with 1 takes a target out
	// at the same requests. With more, nginx also counts failures together that
	// are further apart, where no request has succeeded after a pause of
	// fail_timeout.
	//
	// 0 means 1, a negative number switches that off. The only target of a group
	// is never taken out.
	MaxFails int
	// FailTimeout is the time of MaxFails; 0 means 10 seconds.
	FailTimeout time.Duration
	// MaxConns bounds the requests and tunnels that the target has at a time; 0
	// means no bound. What it can't take waits in the group's queue.
	MaxConns int
	// Backup targets are asked only when no other target can be.
	Backup bool
	// Down targets are never asked. Under IPHash they keep their place, so that
	// the clients of other targets stay where they are.
	Down bool
}

const maxWeight = 65535

// withDefaults checks t and fills its defaults in.
func (t Target) withDefaults() (Target, error) {
	if err := checkAddr(t.Addr); err != nil {
		return t, fmt.Errorf("target %q: %w", t.Addr, err)
	}
	if err := t.checkNumbers(); err != nil {
		return t, fmt.Errorf("target %q: %w", t.Addr, err)
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

func (t Target) checkNumbers() error {
	switch {
	case t.Weight < 0:
		return fmt.Errorf("negative weight %d", t.Weight)
	case t.Weight > maxWeight:
		return fmt.Errorf("weight %d is over %d", t.Weight, maxWeight)
	case t.FailTimeout < 0:
		return fmt.Errorf("negative FailTimeout %v", t.FailTimeout)
	case t.MaxConns < 0:
		return fmt.Errorf("negative MaxConns %d", t.MaxConns)
	}
	return nil
}
