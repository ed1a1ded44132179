package upstream

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"
)

// Target is one backend server of a group.
type Target struct {
	// Addr is the address to dial: "host:port", or "unix:/path" for a unix
	// socket. host is a name or an IP address, an IPv6 address in brackets; port is a
	// number from 1 to 65535. It is no URL: ParseTarget makes a Target of one.
	Addr string
	// ID distinguishes targets of one Addr, which otherwise share their health and their requests in flight: targets with different
	// IDs have their own, and a request may be sent to each. "" means Addr.
	ID string
	// Scheme is "http" or "https"; "" means Options.Scheme. The targets of a group may have different ones with Protocol
	// HTTP1; the others are for one scheme.
	Scheme string
	// Path is the base path that package proxy adds before the path of each request, behind Options.Rewrite, for requests and
	// upgrades: "/base" and "/x" are sent as "/base/x", both as they are escaped. It begins with a slash; one at its end counts as
	// none. "" adds nothing. It is not added to Check.Path, and Location fields of responses are not changed.
	Path string
	// ServerName is the name that the certificate of an https target is verified for, and that is sent by SNI; "" means that of the
	// TLSConfig, or the host of Addr. It is a name in ASCII (of another one write the form in Punycode) or an IP address.
	ServerName string
	// TLSConfig configures TLS to the target if that is https, in place of Options.TLSConfig, for instance with a client
	// certificate; nil means that one. Options.Transport knows it only if it is a Transport of this package, and a
	// wsupgrade.Forwarder of the program's own if its DialTLS is the function Dial. It must not be changed while the target is in use. Set the same TLSConfig in each list
	// of a Source: connections are used again only for the same pointer and the same ServerName.
	TLSConfig *tls.Config
	// Name, Zone, Labels and Value are the program's own: Lease.Target and Status have them. The group does not use them.
	Name, Zone string
	Labels     map[string]string
	Value      any
	// Weight is the target's share of the requests relative to the other targets'
	// weights, up to 65535; 0 means 1.
	Weight int
	// MaxFails is how many failures within FailTimeout take the target out. 0 means 1, or,
	// with Options.FailRate, that only their share does; a negative number means that failures
	// do not count. The only target of a group is never taken out, nor, unless
	// Options.MaxEjected is 1, the last one that is available.
	//
	// A failure counts for FailTimeout, even if requests succeed in the meantime. A target
	// that is out gets no request until FailTimeout has passed since its last failure, and
	// then one request. If that succeeds, or one that was sent before, the target is
	// available again and its failures are forgotten. If it fails, the target is out for
	// another FailTimeout. If its outcome does not count, for instance since its client has
	// disconnected, the next request is let through after FailTimeout.
	//
	// These are the states of nginx's max_fails. With 1, nginx takes a target out
	// at the same requests. With more, nginx also adds up failures that are further
	// apart, if no request has succeeded after a pause of fail_timeout.
	MaxFails int
	// FailTimeout is the time of MaxFails; 0 means 10 seconds. Options.MaxFailTimeout lets the time
	// for which the target is out grow.
	FailTimeout time.Duration
	// MaxConns bounds the requests and tunnels that the target has at a time; 0
	// means no bound. If all targets have theirs, requests wait in the group's queue
	// (Options.Queue).
	MaxConns int
	// Backup targets get requests only when no other target is available.
	Backup bool
	// Down targets get no requests. With IPHash, Hash and HashModulo they keep their share of the
	// clients or keys, so that the other targets keep theirs.
	Down bool
	// Draining targets get only the requests that Affinity sends to them. Group.SetDrained leaves a target none.
	Draining bool
}

const maxWeight = 65535

// key is what the target's state is kept by.
func (t *Target) key() string {
	if t.ID == "" {
		return t.Addr
	}
	return t.Addr + " " + t.ID // an address has no space
}

// withDefaults checks t and returns it with its defaults filled in, for a group of o.
func (t Target) withDefaults(o *Options) (Target, error) {
	counted := o.FailRate == 0 // so that a number of failures takes t out by default
	if err := checkAddr(t.Addr); err != nil {
		return t, fmt.Errorf("target %q: %w", redacted(t.Addr), err)
	}
	if err := t.checkNumbers(); err != nil {
		return t, fmt.Errorf("target %q: %w", t.Addr, err)
	}
	set(&t.Scheme, o.Scheme)
	if err := t.checkReach(o); err != nil {
		return t, fmt.Errorf("target %q: %w", t.Addr, err)
	}
	t.Path = strings.TrimSuffix(t.Path, "/")
	if t.Weight == 0 {
		t.Weight = 1
	}
	if t.MaxFails == 0 && counted {
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
