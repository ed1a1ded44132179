package upstream_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/upstream"
)

// nameserver responds over in-memory connections, framed as over TCP.
type nameserver struct {
	mu      sync.Mutex
	ttl     uint32
	a       []string
	srv     []dnsmessage.SRVResource
	fail    bool
	queries int // for A
}

func (n *nameserver) change(f func(*nameserver)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n)
}

func (n *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

func (n *nameserver) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		resp, err := n.respond(query)
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(resp))), resp...)); err != nil {
			return
		}
	}
}

func (n *nameserver) respond(query []byte) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: n.ttl}
	switch {
	case n.fail:
		m.RCode = dnsmessage.RCodeServerFailure
	case q.Type == dnsmessage.TypeA:
		n.queries++
		for _, addr := range n.a {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()}})
		}
	case q.Type == dnsmessage.TypeSRV:
		for _, srv := range n.srv {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &srv})
		}
	}
	return m.Pack()
}

// warmResolver makes package net initialise its global state outside of a synctest
// bubble.
func warmResolver(t *testing.T) {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("closed") }}
	if _, err := r.LookupHost(t.Context(), "warm.example."); err == nil {
		t.Error("a lookup without a name server")
	}
}

// listed returns the targets of a group, with the fields that a source sets.
func listed(g *upstream.Group) string {
	var list []string
	for s := range g.Targets() {
		entry := fmt.Sprint(s.Target.Addr, "*", s.Target.Weight)
		if s.Target.Backup {
			entry += " backup"
		}
		list = append(list, entry)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// A name is looked up again when its records' TTL has passed, and the group has the
// addresses of the last lookup that succeeded.
func TestDNS(t *testing.T) {
	warmResolver(t)
	synctest.Test(t, func(t *testing.T) {
		n := &nameserver{ttl: 30, a: []string{"10.0.0.2", "10.0.0.1"}}
		var failures atomic.Int32
		source, err := upstream.DNS("app.example.:8080", upstream.DNSOptions{
			Target: upstream.Target{Weight: 3, MaxConns: 7}, Resolver: n.resolver(), OnError: func(error) { failures.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, upstream.Options{Source: source})
		check := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := listed(g); got != want {
				t.Errorf("targets %q, want %q", got, want)
			}
		}
		check("10.0.0.1:8080*3, 10.0.0.2:8080*3")
		n.change(func(n *nameserver) { n.a = []string{"10.0.0.3"}; n.ttl = 600 })
		time.Sleep(29 * time.Second)
		check("10.0.0.1:8080*3, 10.0.0.2:8080*3")
		time.Sleep(2 * time.Second)
		check("10.0.0.3:8080*3")
		n.change(func(n *nameserver) { n.fail = true })
		time.Sleep(5*time.Minute - 3*time.Second) // MaxInterval is less than the TTL
		if failures.Load() != 0 {
			t.Error("the name was looked up too early")
		}
		time.Sleep(4 * time.Second)
		check("10.0.0.3:8080*3")
		if failures.Load() == 0 {
			t.Error("OnError was not called with the failure")
		}
		n.change(func(n *nameserver) { n.fail = false; n.a = []string{"10.0.0.4"}; n.ttl = 0 })
		time.Sleep(30 * time.Second)
		check("10.0.0.4:8080*3")
		synctest.Wait()
		n.change(func(n *nameserver) { n.queries = 0 })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		var queries int
		n.change(func(n *nameserver) { queries = n.queries })
		if queries != 10 {
			t.Errorf("with a TTL of 0 the name was looked up %d times in ten seconds", queries)
		}
	})
}

func TestSRV(t *testing.T) {
	warmResolver(t)
	synctest.Test(t, func(t *testing.T) {
		srv := func(priority, weight, port uint16, target string) dnsmessage.SRVResource {
			return dnsmessage.SRVResource{Priority: priority, Weight: weight, Port: port, Target: dnsmessage.MustNewName(target)}
		}
		n := &nameserver{ttl: 5, srv: []dnsmessage.SRVResource{srv(20, 1, 81, "c.example."), srv(5, 1, 0, "d.example."), srv(10, 60, 80, "a.example."), srv(10, 20, 80, "b.example.")}}
		source, err := upstream.SRV("_http._tcp.app.example.", upstream.DNSOptions{Resolver: n.resolver()})
		if err != nil {
			t.Fatal(err)
		}
		g := newGroup(t, upstream.Options{Source: source})
		synctest.Wait()
		if got, want := listed(g), "a.example:80*60, b.example:80*20, c.example:81*1 backup"; got != want {
			t.Errorf("targets %q, want %q", got, want)
		}
	})
}

// A request received before the first list waits for it.
func TestWaitsForTheFirstSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &picks{t: t, g: newGroup(t, upstream.Options{Name: "app", Source: late(time.Second)})}
		if l := p.lease(); name(l) != "a" {
			t.Errorf("leased %s", l.Addr())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, upstream.Options{Name: "app", Source: late(time.Hour)})
		_, err := g.Pick(t.Context(), request())
		refused(t, err, culvert.NoTarget, "no targets are known yet")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := g.Pick(ctx, request()); errs.As(err).Kind != culvert.ClientGone || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// late is a Source that delivers a:1 after its duration.
type late time.Duration

func (d late) Watch(ctx context.Context, set func(...upstream.Target) error) {
	select {
	case <-time.After(time.Duration(d)):
		_ = set(upstream.Target{Addr: "a:1"})
		<-ctx.Done()
	case <-ctx.Done():
	}
}

// The TTL counts over UDP, too, over which most lookups are made.
func TestDNSOverUDP(t *testing.T) {
	leaktest.Check(t)
	n := &nameserver{ttl: 1, a: []string{"127.0.0.1"}}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if resp, err := n.respond(buf[:size]); err == nil {
				_, _ = conn.WriteTo(resp, from)
			}
		}
	})
	defer serving.Wait()
	defer conn.Close()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	server := serve(t, (*httptest.Server).Start)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	// If the TTL were ignored, the next lookup would come after MinInterval.
	source, err := upstream.DNS("app.example.:"+port, upstream.DNSOptions{Resolver: resolver, MinInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	g := newGroup(t, upstream.Options{Source: source})
	if got := exchange(t, g); got != "HTTP/1.1" {
		t.Errorf("got %q", got)
	}
	n.change(func(n *nameserver) { n.a = []string{"127.0.0.2"} })
	for i := range 20 { // far less than the second of the TTL
		if got := listed(g); got != "127.0.0.1:"+port+"*1" {
			t.Fatalf("targets %q after %d looks", got, i)
		}
		time.Sleep(time.Millisecond)
	}
	for range 1000 {
		if listed(g) == "127.0.0.2:"+port+"*1" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("targets %q", listed(g))
}
