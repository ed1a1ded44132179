package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/culvert-go/culvert/internal/panics"
)

// DNSOptions configures DNS and SRV.
type DNSOptions struct {
	// Target is the template of each target. Its Addr is overwritten, and by SRV
	// its Weight and Backup too.
	Target Target
	// MinInterval and MaxInterval bound the time until the next lookup, which is the
	// least TTL of the records found, or MinInterval if the TTL is unknown (the hosts
	// file). 0 means 1 second and 5 minutes. A failed lookup is repeated after
	// MinInterval.
	MinInterval, MaxInterval time.Duration
	// Resolver looks names up; nil means one like net.DefaultResolver, with PreferGo.
	// Without PreferGo the TTLs may be unknown. A lookup fails if the resolver's Dial
	// panics, or returns neither a connection nor an error; the panic is logged with
	// slog.Default().
	Resolver *net.Resolver
	// OnError, if not nil, is called with the error of each failed lookup, and of each
	// list of targets that the group refused. The group keeps its targets then. OnError
	// must not call Group.Close, which waits for it. For a panic of it see Source.
	OnError func(error)
}

// DNS returns a Source of one target for each IP address of the host in addr, which is
// "host:port". It returns an error if addr or o is invalid.
func DNS(addr string, o DNSOptions) (Source, error) {
	host, port, err := splitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("upstream: DNS %q: %w", addr, err)
	}
	return newLookups(o, func(ctx context.Context, r *net.Resolver) ([]Target, error) {
		ips, err := r.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		list := make([]Target, len(ips))
		for i, ip := range ips {
			list[i] = o.Target
			list[i].Addr = net.JoinHostPort(ip.Unmap().String(), port)
		}
		return list, nil
	})
}

// SRV returns a Source of the targets of name's SRV records (RFC 2782). Those of the
// best priority get the requests, by their weights; the others are backups. Records with
// port 0 are ignored. It returns an error if name or o is invalid.
func SRV(name string, o DNSOptions) (Source, error) {
	if name == "" {
		return nil, fmt.Errorf("upstream: SRV: no name")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil, fmt.Errorf("upstream: SRV %q: an IP address has no SRV records", name)
	}
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("upstream: SRV: %w", err)
	}
	return newLookups(o, func(ctx context.Context, r *net.Resolver) ([]Target, error) {
		_, records, err := r.LookupSRV(ctx, "", "", name)
		if err != nil {
			return nil, err
		}
		// One record that can't be dialled must not invalidate the others.
		records = slices.DeleteFunc(records, func(r *net.SRV) bool { return r.Port == 0 })
		list := make([]Target, len(records))
		for i, record := range records {
			list[i] = o.Target
			list[i].Addr = net.JoinHostPort(strings.TrimSuffix(record.Target, "."), strconv.Itoa(int(record.Port)))
			list[i].Weight = int(record.Weight)
			list[i].Backup = record.Priority > records[0].Priority // sorted by it
		}
		return list, nil
	})
}

// lookups is a Source that looks targets up at intervals.
type lookups struct {
	o      DNSOptions
	lookup func(context.Context, *net.Resolver) ([]Target, error)
}

func newLookups(o DNSOptions, lookup func(context.Context, *net.Resolver) ([]Target, error)) (Source, error) {
	set(&o.MinInterval, time.Second)
	set(&o.MaxInterval, 5*time.Minute)
	if o.MinInterval < 0 || o.MaxInterval < o.MinInterval {
		return nil, fmt.Errorf("upstream: DNS: intervals from %v to %v", o.MinInterval, o.MaxInterval)
	}
	if err := o.Target.checkNumbers(); err != nil {
		return nil, fmt.Errorf("upstream: DNSOptions.Target: %w", err)
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return &lookups{o, lookup}, nil
}

// sameRecord reports whether two targets are of equal records: all else of them is DNSOptions.Target's.
func sameRecord(a, b Target) bool {
	return a.Addr == b.Addr && a.Weight == b.Weight && a.Backup == b.Backup
}

// Watch implements Source.
func (l *lookups) Watch(ctx context.Context, set func(...Target) error) {
	var last []Target
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		list, ttl, err := l.once(ctx)
		if err == nil && !slices.EqualFunc(list, last, sameRecord) {
			if err = set(list...); err == nil {
				last = list
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.o.OnError(err)
			ttl = l.o.MinInterval
		}
		timer.Reset(min(max(ttl, l.o.MinInterval), l.o.MaxInterval))
	}
}

// once looks up and returns the targets and the least TTL of their records, 0 if it is unknown.
func (l *lookups) once(ctx context.Context) ([]Target, time.Duration, error) {
	var ttl leastTTL
	list, err := l.lookup(ctx, ttl.resolver(l.o.Resolver))
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(list, func(a, b Target) int { return strings.Compare(a.Addr, b.Addr) })
	return list, ttl.get(), nil
}

// leastTTL parses the DNS responses that a resolver reads: net.Resolver itself does
// not return their TTLs.
type leastTTL struct {
	mu   sync.Mutex
	ttl  time.Duration
	seen bool
}

// resolver returns a resolver like r whose responses t parses.
func (t *leastTTL) resolver(r *net.Resolver) *net.Resolver {
	watched := &net.Resolver{PreferGo: true}
	dial := (&net.Dialer{}).DialContext
	if r != nil {
		watched.PreferGo, watched.StrictErrors = r.PreferGo, r.StrictErrors
		if r.Dial != nil {
			dial = r.Dial
		}
	}
	watched.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialServer(ctx, dial, network, addr)
		if err != nil {
			return nil, err
		}
		if packets, ok := conn.(net.PacketConn); ok { // the resolver checks for this interface
			return &watchedPackets{watchedConn{conn, t}, packets}, nil
		}
		return &watchedConn{conn, t}, nil
	}
	return watched
}

// dialServer calls dial, which is that of the user's Resolver. It runs on a goroutine of package net,
// where a panic would end the program, and so would a nil connection without an error.
func dialServer(ctx context.Context, dial dialer, network, addr string) (conn net.Conn, err error) {
	defer func() {
		if p, panicked := err.(*panics.Error); panicked {
			panics.Log(nil, "upstream.DNSOptions.Resolver.Dial", p.Value, p.Stack)
		}
	}()
	defer panics.Catch(&err)
	if conn, err = dial(ctx, network, addr); conn == nil && err == nil {
		return nil, errors.New("upstream: DNSOptions.Resolver.Dial returned (nil, nil)")
	}
	return conn, err
}

func (t *leastTTL) get() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ttl
}

// parse notes the TTLs of the records in a DNS message, as far as the message can be parsed.
func (t *leastTTL) parse(message []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(message); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	for {
		h, err := p.AnswerHeader()
		if err != nil || p.SkipAnswer() != nil {
			return
		}
		ttl := time.Duration(h.TTL) * time.Second
		t.mu.Lock()
		if !t.seen || ttl < t.ttl {
			t.seen, t.ttl = true, ttl
		}
		t.mu.Unlock()
	}
}

type watchedConn struct {
	net.Conn
	t *leastTTL
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.t.parse(p[:n])
	return n, err
}

type watchedPackets struct {
	watchedConn
	packets net.PacketConn
}

func (c *watchedPackets) ReadFrom(p []byte) (int, net.Addr, error) { return c.packets.ReadFrom(p) }

func (c *watchedPackets) WriteTo(p []byte, a net.Addr) (int, error) { return c.packets.WriteTo(p, a) }
