package resolver

import (
	"context"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzAccept passes messages to a lookup. One is accepted only if it is a response with the id and the question of a query; what
// is used of it is bounded and of the family that was queried.
func FuzzAccept(f *testing.F) {
	base := func(kind dnsmessage.Type, records ...string) []byte {
		q, _ := newQuestion("name.test", kind)
		m := query{}
		if err := m.Unpack(q.message); err != nil {
			f.Fatal(err)
		}
		m.ID = 0x1234
		return m.response(records...)
	}
	f.Add(base(dnsmessage.TypeA, "name.test 9 A 192.0.2.1"), false)
	f.Add(base(dnsmessage.TypeAAAA, "name.test 9 CNAME b.test", "b.test 1 AAAA 2001:db8::1"), true)
	f.Add(base(dnsmessage.TypeSRV, "name.test 9 SRV 1 2 3 b.test"), false)
	f.Add(base(dnsmessage.TypeA, "TRUNCATED"), true)
	f.Add(base(dnsmessage.TypeA, "FORMERR"), false)
	f.Add([]byte{0x12, 0x34, 0x84, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1}, false)
	f.Fuzz(func(t *testing.T, data []byte, tcp bool) {
		r := New(Options{Servers: []string{"a"}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		x := &exchange{Resolver: r, ctx: ctx, received: make(chan message)}
		for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeSRV} {
			q, ok := newQuestion("name.test", kind)
			if !ok {
				t.Fatal("no query")
			}
			q.id, q.overTCP = 0x1234, true // no connection is made
			x.questions = append(x.questions, q)
		}
		got := x.accept(message{data: data, tcp: tcp})
		if got == nil {
			return
		}
		q := x.questionOf(got)
		if q == nil || q.response != got || len(data) < 12 || data[0] != 0x12 || data[1] != 0x34 || data[2]&0xfa != 0x80 {
			t.Fatalf("accepted: %x", data)
		}
		if len(got.addrs) > maxRecords || len(got.services) > maxRecords || got.ttl > 1<<31-1 && got.records > 0 {
			t.Fatalf("%d addresses, %d services, ttl %d", len(got.addrs), len(got.services), got.ttl)
		}
		family := map[dnsmessage.Type]func(netip.Addr) bool{dnsmessage.TypeA: netip.Addr.Is4, dnsmessage.TypeAAAA: netip.Addr.Is6}[q.kind]
		for _, a := range got.addrs {
			if family == nil || !family(a) {
				t.Fatalf("%v for a query of %v", a, q.kind)
			}
		}
		if got.code != 0 && len(got.addrs)+len(got.services) > 0 || len(got.services) > 0 && q.kind != dnsmessage.TypeSRV {
			t.Fatalf("%+v", got)
		}
	})
}
