package resolver

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var distant = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// inMemory makes a Resolver's connections to name servers in memory. Their address is the name of one of respond.
func inMemory(t *testing.T, r *Resolver, respond map[string]func(query) [][]byte) map[string]*nameserver {
	servers := map[string]*nameserver{}
	for name, f := range respond {
		servers[name] = &nameserver{t: t, addr: name, respond: f}
	}
	r.dial = func(_ context.Context, network, address string) (net.Conn, error) {
		near, far := net.Pipe()
		s := servers[address]
		if network == "tcp" {
			go s.serveTCP(far)
			return near, nil
		}
		go func() {
			defer far.Close()
			data := make([]byte, 65535)
			for {
				n, err := far.Read(data)
				if err != nil {
					return
				}
				query := slices.Clone(data[:n])
				go func() { // a datagram does not wait for its reader
					for _, message := range s.responses(query, false) {
						_, _ = far.Write(message)
					}
				}()
			}
		}()
		return near, nil
	}
	return servers
}

func TestTimeToLive(t *testing.T) {
	for name, c := range map[string]struct {
		valid time.Duration
		keeps time.Duration
	}{
		"name.test": {0, 10 * time.Second}, "alias.test": {0, 5 * time.Second}, "never.test": {0, 0}, "negative.test": {0, 0}, "wide.test": {0, 3 * time.Second},
		"never.test.": {20 * time.Second, 20 * time.Second}, "name.test.": {2 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := New(Options{Servers: []string{"a"}, Valid: c.valid})
			s := inMemory(t, r, map[string]func(query) [][]byte{"a": zone(map[string][]string{
				"A name.test":     {"name.test 10 A 192.0.2.1"},
				"A alias.test":    {"alias.test 5 CNAME name.test"},
				"AAAA alias.test": {"alias.test 50 CNAME name.test"},
				"A wide.test":     {"wide.test 10 A 192.0.2.1", "wide.test 60 A 192.0.2.2"},
				"AAAA wide.test":  {"wide.test 3 AAAA 2001:db8::1"},
				"A never.test":    {"never.test 0 A 192.0.2.1"},
				"A negative.test": {"negative.test 4294967295 A 192.0.2.1"},
			})})["a"]
			queries := func() (n int) {
				if got := lookUp(t, r, strings.ToUpper(name)); !strings.HasPrefix(got, "192.0.2.1") {
					t.Errorf("%s: %s", name, got)
				}
				for _, q := range s.received() {
					if q == "A "+strings.TrimSuffix(name, ".") {
						n++
					}
				}
				return n
			}
			start := time.Now()
			a, _ := r.LookupIP(t.Context(), name)
			if got := a.Valid.Sub(start); got != c.keeps {
				t.Errorf("%s is valid for %v, want %v", name, got, c.keeps)
			}
			if c.keeps > 0 {
				time.Sleep(c.keeps - 1)
				if got := queries(); got != 1 {
					t.Errorf("%s: %d queries while it was valid", name, got)
				}
				time.Sleep(time.Nanosecond)
			}
			if got := queries(); got != 2 {
				t.Errorf("%s: %d queries when it had expired", name, got)
			}
		})
	}
}

// Errors are not kept.
func TestErrorsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Servers: []string{"a"}, Valid: time.Hour})
		var queries atomic.Int32
		inMemory(t, r, map[string]func(query) [][]byte{"a": func(q query) [][]byte {
			if queries.Add(1) <= 4 { // two lookups of two families
				return [][]byte{q.response("SERVFAIL")}
			}
			if q.kind == "A" {
				return [][]byte{q.response("name.test 1 A 192.0.2.1")}
			}
			return [][]byte{q.response()}
		}})
		for _, want := range []string{"2: Server failure", "2: Server failure", "192.0.2.1", "192.0.2.1"} {
			if got := lookUp(t, r, "name.test"); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// What has no response is sent to the next server after five seconds, and a late response counts.
func TestResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Servers: []string{"silent", "late", "half"}})
		servers := inMemory(t, r, map[string]func(query) [][]byte{
			"silent": func(query) [][]byte { return nil },
			"late": func(q query) [][]byte {
				if q.kind == "A" {
					time.Sleep(7 * time.Second) // the next server is queried meanwhile
					return [][]byte{q.response("name.test 9 A 192.0.2.1")}
				}
				return nil
			},
			"half": func(q query) [][]byte {
				if q.kind == "AAAA" {
					return [][]byte{q.response("name.test 9 AAAA 2001:db8::1")}
				}
				return nil
			},
		})
		start := time.Now()
		if got := lookUp(t, r, "name.test"); got != "192.0.2.1 2001:db8::1" {
			t.Error(got)
		}
		if took := time.Since(start); took != 12*time.Second {
			t.Errorf("it took %v", took)
		}
		for name, want := range map[string][]string{
			"silent": {"A name.test", "AAAA name.test"}, "late": {"A name.test", "AAAA name.test"}, "half": {"A name.test", "AAAA name.test"},
		} {
			if got := slices.Sorted(slices.Values(servers[name].received())); !slices.Equal(got, want) {
				t.Errorf("the queries to %s are %q", name, got)
			}
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Servers: []string{"silent"}})
		servers := inMemory(t, r, map[string]func(query) [][]byte{"silent": func(query) [][]byte { return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		if _, err := r.LookupIP(ctx, "name.test"); err == nil || err.Error() != "110: Operation timed out" {
			t.Errorf("%v", err)
		}
		if got := len(servers["silent"].received()); got != 6 {
			t.Errorf("%d queries", got)
		}
	})
}

// A TCP connection without a response ends.
func TestTruncatedResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		r := New(Options{Servers: []string{"mute", "loud"}, NoIPv6: true, Log: log.add})
		servers := inMemory(t, r, map[string]func(query) [][]byte{
			"mute": func(q query) [][]byte {
				if q.tcp {
					return nil
				}
				return [][]byte{q.response("TRUNCATED")}
			},
			"loud": func(q query) [][]byte { return [][]byte{q.response("name.test 9 A 192.0.2.1")} },
		})
		if got := lookUp(t, r, "name.test"); got != "192.0.2.1" {
			t.Errorf("%s\n%s", got, log.text())
		}
		if got := servers["loud"].received(); !slices.Equal(got, []string{"A name.test over TCP"}) {
			t.Errorf("the queries to the second are %q", got)
		}
	})
}
