package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// lines collects what a Resolver logs.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, "\n")
}

// lookUp returns the addresses of a name as text, or the error's.
func lookUp(t *testing.T, r *Resolver, name string) string {
	t.Helper()
	a, err := r.LookupIP(t.Context(), name)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(fmt.Sprint(a.List), "[]")
}

// With two families an error of one is an error of the name, and an alias counts if the last response has it.
func TestFamilies(t *testing.T) {
	records := map[string][]string{}
	for name, of := range map[string]string{
		"none": "", "a": "a.test 9 A 192.0.2.1", "two": "two.test 9 A 192.0.2.1,two.test 9 A 192.0.2.2",
		"alias": "alias.test 9 CNAME both.test", "through": "through.test 9 CNAME b.test,b.test 9 A 192.0.2.7", "bad": "SERVFAIL",
	} {
		for name6, of6 := range map[string]string{
			"none": "", "a": "a.test 9 AAAA 2001:db8::1", "alias": "alias.test 9 CNAME both.test", "bad": "REFUSED",
		} {
			whole := name + "-" + name6 + ".test"
			fit := func(list string) []string {
				if list == "" {
					return nil
				}
				var all []string
				for _, r := range strings.Split(list, ",") {
					if f := strings.Fields(r); len(f) > 1 && f[0] != "b.test" {
						f[0] = whole
						r = strings.Join(f, " ")
					}
					all = append(all, r)
				}
				return all
			}
			records["A "+whole], records["AAAA "+whole] = fit(of), fit(of6)
		}
	}
	records["A both.test"] = []string{"both.test 9 A 192.0.2.9"}
	records["AAAA both.test"] = []string{"both.test 9 AAAA 2001:db8::9"}
	s := serve(t, zone(records))
	for name, want := range map[string]string{
		"none-none": "3: Host not found", "none-a": "2001:db8::1", "none-alias": "192.0.2.9 2001:db8::9", "none-bad": "5: Operation refused",
		"a-none": "192.0.2.1", "a-a": "192.0.2.1 2001:db8::1", "a-alias": "192.0.2.1", "a-bad": "5: Operation refused",
		"two-a":      "192.0.2.1 192.0.2.2 2001:db8::1",
		"alias-none": "3: Host not found", "alias-a": "2001:db8::1", "alias-alias": "192.0.2.9 2001:db8::9", "alias-bad": "5: Operation refused",
		"through-none": "192.0.2.7", "through-a": "192.0.2.7 2001:db8::1", "through-alias": "192.0.2.7",
		"bad-none": "2: Server failure", "bad-a": "2: Server failure", "bad-alias": "2: Server failure", "bad-bad": "2: Server failure",
	} {
		if got := lookUp(t, New(Options{Servers: []string{s.addr}}), name+".test"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for want, o := range map[string]Options{"192.0.2.1": {NoIPv6: true}, "2001:db8::1": {NoIPv4: true}} {
		o.Servers = []string{s.addr}
		if got := lookUp(t, New(o), "a-a.test"); got != want {
			t.Errorf("of one family: %s, want %s", got, want)
		}
	}
	if got := lookUp(t, New(Options{Servers: []string{s.addr}, NoIPv6: true}), "a-bad.test"); got != "192.0.2.1" {
		t.Errorf("with an error of the family that is left out: %s", got)
	}
}

// An alias that leads to itself ends, in one response and in several.
func TestAliases(t *testing.T) {
	long := strings.Repeat("a", 63)
	s := serve(t, zone(map[string][]string{
		"A circle.test":                       {"circle.test 9 CNAME circle.test"},
		"A ring.test":                         {"ring.test 9 CNAME gnir.test"},
		"A gnir.test":                         {"gnir.test 9 CNAME ring.test"},
		"A wheel.test":                        {"wheel.test 9 CNAME b.test", "b.test 9 CNAME wheel.test", "b.test 9 A 192.0.2.1"},
		"A backwards.tes":                     {"c.test 9 A 192.0.2.5", "b.test 9 CNAME c.test", "backwards.tes 9 CNAME B.test"},
		"A foreign.test":                      {"elsewhere.test 9 A 192.0.2.66", "foreign.test 9 A 192.0.2.6", "elsewhere.test 9 CNAME foreign.test"},
		"A long.test":                         {"long.test 9 CNAME " + long + "." + long + "." + long},
		"A " + long + "." + long + "." + long: {long + "." + long + "." + long + " 9 A 192.0.2.8"},
		"A text.test":                         {"text.test 9 TXT x", "text.test 9 AAAA ::1"},
	}))
	r := New(Options{Servers: []string{s.addr}, NoIPv6: true})
	for name, want := range map[string]string{
		"circle.test": "3: Host not found", "ring.test": "3: Host not found", "wheel.test": "3: Host not found", "backwards.tes": "192.0.2.5",
		"foreign.test": "192.0.2.6", "long.test": "192.0.2.8", "text.test": "3: Host not found",
		"": "3: Host not found", ".": "3: Host not found", "a..test": "3: Host not found", strings.Repeat("b", 64) + ".test": "3: Host not found",
		strings.Repeat("b.", 200): "3: Host not found",
	} {
		if got := lookUp(t, r, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A message counts only if it has the id and the question of a query.
func TestForgedResponses(t *testing.T) {
	var log lines
	s := serve(t, func(q query) [][]byte {
		edited := func(edit func(*dnsmessage.Message)) []byte {
			m := q.Message
			m.Questions = slices.Clone(m.Questions)
			m.Response = true
			m.Answers = []dnsmessage.Resource{parseRecord("name.test 9 A 192.0.2.66")}
			edit(&m)
			data, err := m.Pack()
			if err != nil {
				panic(err)
			}
			return data
		}
		return [][]byte{
			nil, []byte("nonsense"), q.response("name.test 9 A 192.0.2.66")[:20],
			edited(func(m *dnsmessage.Message) { m.ID++ }),
			edited(func(m *dnsmessage.Message) { m.Response = false }),
			edited(func(m *dnsmessage.Message) { m.OpCode = 5 }),
			edited(func(m *dnsmessage.Message) { m.RCode = 1 }),
			edited(func(m *dnsmessage.Message) { m.RCode = 9 }),
			edited(func(m *dnsmessage.Message) { m.Questions = nil }),
			edited(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }),
			edited(func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("other.test.") }),
			edited(func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeAAAA }),
			edited(func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }),
			edited(func(m *dnsmessage.Message) { m.Answers[0].Header.Class = dnsmessage.ClassCHAOS }),
			append(q.response()[:7], append([]byte{1}, q.response()[8:]...)...), // a record is missing
			q.response("NAME.test 9 A 192.0.2.1"),
			q.response("name.test 9 A 192.0.2.66"),
		}
	})
	r := New(Options{Servers: []string{s.addr}, NoIPv6: true, Log: log.add})
	if got := lookUp(t, r, "Name.Test."); got != "192.0.2.1" {
		t.Errorf("%s\n%s", got, log.text())
	}
	for _, want := range []string{
		"invalid UDP DNS response", "wrong ident", "DNS error (1: Format error), query id:", "DNS error (9: Unknown error)",
		"invalid number of questions in DNS response", "unexpected DNS response for other.test", "unexpected RR class in DNS response",
	} {
		if !strings.Contains(log.text(), want) {
			t.Errorf("nothing is logged of %q:\n%s", want, log.text())
		}
	}
}

func TestTruncated(t *testing.T) {
	var log lines
	s := serve(t, func(q query) [][]byte {
		switch {
		case !q.tcp, q.name == "for-ever.test":
			return [][]byte{q.response("TRUNCATED", q.name+" 9 A 192.0.2.66"), q.response("TRUNCATED")}
		case q.name == "many.test":
			return [][]byte{q.response(slices.Repeat([]string{"many.test 9 A 192.0.2.1"}, maxRecords+100)...)}
		}
		return [][]byte{q.response("tcp.test 9 A 192.0.2.1")}
	})
	r := New(Options{Servers: []string{s.addr}, NoIPv6: true, Log: log.add})
	if got := lookUp(t, r, "tcp.test"); got != "192.0.2.1" {
		t.Errorf("%s\n%s", got, log.text())
	}
	if got := s.received(); !slices.Equal(got, []string{"A tcp.test", "A tcp.test over TCP"}) {
		t.Errorf("the queries are %q", got)
	}
	if a, err := r.LookupIP(t.Context(), "many.test"); len(a.List) != maxRecords {
		t.Errorf("%d addresses, %v", len(a.List), err)
	}
}

// A server that can't be reached is passed over at once; the lookups begin with one server after the other.
func TestSeveralServers(t *testing.T) {
	s := serve(t, zone(map[string][]string{"A name.test": {"name.test 0 A 192.0.2.1"}}))
	gone, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	var log lines
	r := New(Options{Servers: []string{gone.LocalAddr().String(), s.addr}, NoIPv6: true, Log: log.add})
	for range 3 {
		if got := lookUp(t, r, "name.test"); got != "192.0.2.1" {
			t.Errorf("%s\n%s", got, log.text())
		}
	}
	if got := len(s.received()); got != 3 {
		t.Errorf("%d queries", got)
	}
	if !strings.Contains(log.text(), "refused, resolver: "+gone.LocalAddr().String()) {
		t.Errorf("of the server that is gone there is %q", log.text())
	}
}

// Requests for one name wait for one lookup, which ends with the last of them.
func TestSharedLookup(t *testing.T) {
	arrived := make(chan struct{}, 9)
	s := serve(t, func(query) [][]byte { arrived <- struct{}{}; return nil })
	r := New(Options{Servers: []string{s.addr}, NoIPv6: true})
	first, leaveFirst := context.WithCancel(t.Context())
	second, leaveSecond := context.WithCancel(t.Context())
	results := make(chan error, 2)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := r.LookupIP(ctx, "silent.test")
			results <- err
		}()
	}
	<-arrived
	for { // until both wait
		r.mu.Lock()
		l := r.running[key{name: "silent.test"}]
		both := l != nil && l.waiting == 2
		r.mu.Unlock()
		if both {
			break
		}
	}
	leaveFirst()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	select {
	case <-r.running[key{name: "silent.test"}].done:
		t.Error("the lookup has ended with the first")
	default:
	}
	leaveSecond()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("the second: %v", err)
	}
	if len(r.running) != 0 {
		t.Error("the lookup runs on")
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("the queries are %q", got)
	}
}

// What is kept is bounded, and the last used remains.
func TestCacheIsBounded(t *testing.T) {
	leaktest.Check(t)
	c, e := newCache(), entry{valid: distant}
	for i := range maxKnown + 10 {
		c.put(key{name: fmt.Sprint(i)}, e)
		c.get(key{name: "0"}, distant.Add(-1))
	}
	if _, ok := c.get(key{name: "0"}, distant.Add(-1)); !ok || c.used.Len() != maxKnown || len(c.byKey) != maxKnown {
		t.Errorf("%d are kept, the last used: %t", c.used.Len(), ok)
	}
	if _, ok := c.get(key{name: "0"}, distant); ok || c.used.Len() != maxKnown-1 {
		t.Error("one that has expired is kept")
	}
}
