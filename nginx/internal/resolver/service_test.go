package resolver

import (
	"fmt"
	"strings"
	"testing"
)

func TestLookupService(t *testing.T) {
	s := serve(t, zone(map[string][]string{
		"SRV _http._tcp.name.test": {"_http._tcp.name.test 9 SRV 2 6 8082 b.test", "_http._tcp.name.test 9 SRV 1 0 8081 A.test", "_http._tcp.name.test 9 SRV 1 0 8083 gone.test"},
		"SRV _x._udp.name.test":    {"_x._udp.name.test 9 CNAME _y.test"},
		"SRV _y.test":              {"_y.test 5 SRV 1 1 1 c.test"},
		"SRV _bad._tcp.name.test":  {"SERVFAIL"},
		"SRV _gone._tcp.name.test": {"_gone._tcp.name.test 9 SRV 1 1 1 bad.test", "_gone._tcp.name.test 9 SRV 1 1 1 gone.test"},
		"SRV _ill._tcp.name.test":  {"_ill._tcp.name.test 9 SRV 1 1 1 bad.test", "_ill._tcp.name.test 9 SRV 1 1 1 bad.test"},
		"SRV _same._tcp.name.test": {"_same._tcp.name.test 9 SRV 1 1 1 a.test", "_same._tcp.name.test 9 SRV 1 1 1 a.test"},
		"A a.test":                 {"a.test 9 A 192.0.2.1", "a.test 9 A 192.0.2.2"},
		"A b.test":                 {"b.test 9 A 192.0.2.3"},
		"AAAA b.test":              {"b.test 9 AAAA 2001:db8::3"},
		"A c.test":                 {"c.test 1 A 192.0.2.4"},
		"A bad.test":               {"REFUSED"},
	}))
	for service, want := range map[string]string{
		"http":    "192.0.2.1:8081 a.test 1 1, 192.0.2.2:8081 a.test 1 1, 192.0.2.3:8082 b.test 2 6, [2001:db8::3]:8082 b.test 2 6; gone.test could not be resolved (3: Host not found)",
		"_x._udp": "192.0.2.4:1 c.test 1 1",
		"bad":     "2: Server failure",
		"none":    "3: Host not found",
		"gone":    "3: Host not found; bad.test could not be resolved (5: Operation refused); gone.test could not be resolved (3: Host not found)",
		"ill":     "5: Operation refused; bad.test could not be resolved (5: Operation refused); bad.test could not be resolved (5: Operation refused)",
		"same":    "192.0.2.1:1 a.test 1 1, 192.0.2.2:1 a.test 1 1, 192.0.2.1:1 a.test 1 1, 192.0.2.2:1 a.test 1 1",
	} {
		found, err := New(Options{Servers: []string{s.addr}}).LookupService(t.Context(), "Name.test", service)
		var list []string
		for _, a := range found.List {
			list = append(list, fmt.Sprint(a.AddrPort, " ", a.Name, " ", a.Priority, " ", a.Weight))
		}
		got := strings.Join(list, ", ")
		if err != nil {
			got += err.Error()
		}
		for _, failed := range found.Failed {
			got += "; " + failed.Error()
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", service, got, want)
		}
	}
}

// Each record is the first of its priority in proportion to its weight.
func TestServiceOrder(t *testing.T) {
	s := serve(t, zone(map[string][]string{
		"SRV _http._tcp.name.test": {"_http._tcp.name.test 9 SRV 1 1 1 a.test", "_http._tcp.name.test 9 SRV 1 3 2 a.test"},
		"A a.test":                 {"a.test 9 A 192.0.2.1"},
	}))
	r := New(Options{Servers: []string{s.addr}})
	first := map[uint16]int{}
	for range 4000 {
		found, err := r.LookupService(t.Context(), "name.test", "http")
		if err != nil || len(found.List) != 2 {
			t.Fatalf("%v, %v", found, err)
		}
		first[found.List[0].Port()]++
	}
	if first[1] < 800 || first[1] > 1200 { // 1000, of which a deviation of 200 is 7 times the standard one
		t.Errorf("they begin with %v", first)
	}
}
