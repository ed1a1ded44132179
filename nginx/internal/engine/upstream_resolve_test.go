package engine_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is a name server whose records change. A record is "TYPE name" with "SERVFAIL", an address, an alias, or a priority, a
// weight, a port and a target.
type zone struct {
	addr string

	mu      sync.Mutex
	records map[string][]string
	queries map[string]int
}

func newZone(t *testing.T, records map[string][]string) *zone {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{addr: conn.LocalAddr().String(), records: records, queries: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if _, err := conn.WriteTo(z.respond(buf[:n]), from); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return z
}

func (z *zone) set(records map[string][]string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.records, z.queries = records, map[string]int{}
}

// count returns the queries for a record since the last set.
func (z *zone) count(record string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.queries[record]
}

func (z *zone) respond(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil
	}
	q := m.Questions[0]
	key := strings.TrimPrefix(q.Type.String(), "Type") + " " + strings.TrimSuffix(q.Name.String(), ".")
	z.mu.Lock()
	defer z.mu.Unlock()
	z.queries[key]++
	m.Response = true
	for _, text := range z.records[key] {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 3600}
		var body dnsmessage.ResourceBody
		switch ip, err := netip.ParseAddr(text); {
		case text == "SERVFAIL":
			m.RCode = dnsmessage.RCodeServerFailure
			continue
		case q.Type == dnsmessage.TypeSRV:
			var srv dnsmessage.SRVResource
			var to string
			if _, err := fmt.Sscan(text, &srv.Priority, &srv.Weight, &srv.Port, &to); err != nil {
				panic(err)
			}
			srv.Target = dnsmessage.MustNewName(to + ".")
			body = &srv
		case err == nil && ip.Is4():
			body = &dnsmessage.AResource{A: ip.As4()}
		case err == nil:
			body = &dnsmessage.AAAAResource{AAAA: ip.As16()}
		default:
			body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(text + ".")}
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: body})
	}
	data, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return data
}

// backendPort starts a backend on 127.0.0.1 and returns its port.
func backendPort(t *testing.T) string {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	t.Cleanup(backend.Close)
	_, port, _ := net.SplitHostPort(backend.Listener.Addr().String())
	return port
}

// A name of a variable is looked up for each request, and kept as long as it is valid; its case does not matter. A failure of an
// address counts for its request alone.
func TestNamesOfVariables(t *testing.T) {
	z := newZone(t, map[string][]string{
		"A app.test": {"127.0.0.1"}, "A alias.test": {"app.test"}, "AAAA alias.test": {"app.test"}, "A ill.test": {"SERVFAIL"},
		"A two.test": {"127.0.0.201", "127.0.0.202"},
	})
	port := backendPort(t)
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("DNS", z.addr, "PORT", port).Replace(`events {} http {
		resolver DNS; proxy_connect_timeout 1s;
		server { add_header X-Addr $upstream_addr always; proxy_set_header Host kept;
			location / { proxy_pass http://$arg_to:PORT; }
			location /four { resolver DNS ipv6=off valid=1h; proxy_pass http://$arg_to:PORT; }
			location /late { resolver 127.0.0.1:PORT; resolver_timeout 10ms; proxy_pass http://$arg_to:PORT; } } }`)})
	for range 2 {
		for _, to := range []string{"app.test", "App.TEST", "app.test."} {
			if got := s.get("/?to=" + to); got.body != "kept" || got.Header.Get("X-Addr") != "127.0.0.1:"+port {
				t.Errorf("%s: %q at %q", to, got.body, got.Header.Get("X-Addr"))
			}
		}
		equal(t, "an alias", s.get("/?to=alias.test").body, "kept")
		equal(t, "of one family", s.get("/four?to=app.test").body, "kept")
		got := s.get("/?to=two.test").Header.Get("X-Addr")
		if a, b := "127.0.0.201:"+port, "127.0.0.202:"+port; got != a+", "+b && got != b+", "+a {
			t.Errorf("two addresses: %q", got)
		}
		for path, want := range map[string]string{
			"/?to=ill.test":   "ill.test could not be resolved (2: Server failure)",
			"/?to=none.test":  "none.test could not be resolved (3: Host not found)",
			"/late?to=a.test": "a.test could not be resolved (110: Operation timed out)",
		} {
			equal(t, path, s.get(path).StatusCode, http.StatusBadGateway)
			if !strings.Contains(s.errors.String(), want) {
				t.Errorf("%q is not logged:\n%s", want, s.errors.String())
			}
		}
	}
	equal(t, "queries of what is valid", fmt.Sprint(z.count("A app.test"), z.count("AAAA app.test"), z.count("A two.test"), z.count("A alias.test")), "2 1 1 1")
	equal(t, "queries of what has failed", z.count("A none.test"), 2)
}

// More names than upstreams are kept in turn, and each still works.
func TestManyNames(t *testing.T) {
	z := newZone(t, map[string][]string{})
	const many = 600
	records := map[string][]string{}
	for i := range many {
		records[fmt.Sprintf("A n%d.test", i)] = []string{"127.0.0.1"}
	}
	z.set(records)
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("DNS", z.addr, "PORT", backendPort(t)).Replace(`events {} http {
		resolver DNS ipv6=off; server { access_log off; location / { proxy_pass http://$arg_to:PORT; } } }`)})
	for range 2 {
		for i := range many {
			if got := s.get(fmt.Sprintf("/?to=n%d.test", i)); got.StatusCode != http.StatusOK {
				t.Fatalf("%d: %d\n%s", i, got.StatusCode, s.errors.String())
			}
		}
	}
}

// await polls until get returns want: names are looked up each second at most.
func await(t *testing.T, what string, get func() string, want string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for get() != want {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %q, want %q", what, get(), want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The servers of a service have the ports, weights and priorities of its records, which are followed.
func TestService(t *testing.T) {
	port, other := backendPort(t), backendPort(t)
	z := newZone(t, map[string][]string{
		"SRV _http._tcp.app.test": {"1 3 " + port + " a.test", "1 1 " + other + " a.test", "2 1 1 a.test"}, "A a.test": {"127.0.0.1"},
		"SRV _x._udp.app.test": {"1 1 " + other + " a.test", "1 1 " + other + " ill.test"}, "A ill.test": {"SERVFAIL"},
	})
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("DNS", z.addr).Replace(`events {} http { resolver DNS valid=1s; resolver_timeout 1s;
		upstream u { zone z 1m; server app.test resolve service=http; }
		upstream x { zone z 1m; server app.test resolve service=_x._udp; }
		upstream none { zone z 1m; server none.test resolve service=http; }
		server { add_header X-Addr $upstream_addr always; location / { proxy_pass http://u; } location /x { proxy_pass http://x; } location /none { proxy_pass http://none; } } }`)})
	times := map[string]int{}
	for range 8 {
		times[s.get("/").Header.Get("X-Addr")]++
	}
	equal(t, "by weight", fmt.Sprint(times["127.0.0.1:"+port], times["127.0.0.1:"+other]), "6 2")
	equal(t, "beside a target that fails", s.get("/x").Header.Get("X-Addr"), "127.0.0.1:"+other)
	equal(t, "without records", s.get("/none").StatusCode, http.StatusBadGateway)
	for _, want := range []string{
		"ill.test could not be resolved (2: Server failure) while resolving service _x._udp of app.test",
		"service http of none.test could not be resolved (3: Host not found)",
	} {
		if !strings.Contains(s.errors.String(), want) {
			t.Errorf("%q is not logged:\n%s", want, s.errors.String())
		}
	}
	addr := func() string { return s.get("/").Header.Get("X-Addr") }
	z.set(map[string][]string{"SRV _http._tcp.app.test": {"SERVFAIL"}})
	await(t, "queries while the name server is ill", func() string { return fmt.Sprint(z.count("SRV _http._tcp.app.test") > 1) }, "true")
	if got := addr(); got != "127.0.0.1:"+port && got != "127.0.0.1:"+other {
		t.Errorf("after a failure of the name server: %q", got)
	}
	z.set(map[string][]string{})
	await(t, "after the records are gone", addr, "u")
	z.set(map[string][]string{"SRV _http._tcp.app.test": {"7 1 " + other + " a.test"}, "A a.test": {"127.0.0.1"}})
	await(t, "after there is another", addr, "127.0.0.1:"+other)
}

func TestServiceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"server a.test resolve service=;":             "service is empty",
		"server a.test service=http;":                 `service upstream "a.test" requires "resolve" parameter`,
		"server a.test:80 resolve service=http;":      `service upstream "a.test:80" may not have port`,
		"server 127.0.0.1 resolve service=http;":      `service upstream "127.0.0.1" requires domain name`,
		"server a.test resolve service=http;":         `no resolver defined to resolve names at run time in upstream "u"`,
		"resolver_timeout 1s; server a.test resolve;": `no resolver defined to resolve names at run time in upstream "u"`,
	} {
		_, err := load(t, map[string]string{"nginx.conf": "events {} http { upstream u { " + text + " } }"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What was found is kept over a reload, with another port as well, while the name server is ill.
func TestResolveOverReload(t *testing.T) {
	port, other := backendPort(t), backendPort(t)
	z := newZone(t, map[string][]string{"A app.test": {"127.0.0.1"}, "SRV _http._tcp.app.test": {"1 1 " + port + " app.test"}})
	conf := strings.NewReplacer("DNS", z.addr).Replace(`events {} http { resolver DNS valid=1s; resolver_timeout 1s;
		upstream u { zone z 1m; server app.test:PORT resolve; }
		upstream s { zone z 1m; server app.test resolve service=http; }
		server { add_header X-Addr $upstream_addr always; location / { proxy_pass http://u; } location /s { proxy_pass http://s; } } }`)
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(conf, "PORT", port)})
	equal(t, "before", s.get("/").Header.Get("X-Addr"), "127.0.0.1:"+port)
	equal(t, "of a service before", s.get("/s").Header.Get("X-Addr"), "127.0.0.1:"+port)
	z.set(map[string][]string{"A app.test": {"SERVFAIL"}, "SRV _http._tcp.app.test": {"SERVFAIL"}})
	after := reload(t, s, map[string]string{"nginx.conf": strings.ReplaceAll(conf, "PORT", other)})
	equal(t, "after", after.get("/").Header.Get("X-Addr"), "127.0.0.1:"+other)
	equal(t, "of a service after", after.get("/s").Header.Get("X-Addr"), "127.0.0.1:"+port)
}

// Start looks up the names of upstreams that only variables name.
func TestStart(t *testing.T) {
	z := newZone(t, map[string][]string{"A app.test": {"127.0.0.1"}})
	s := serve(t, map[string]string{"nginx.conf": strings.NewReplacer("DNS", z.addr).Replace(`events {} http { resolver DNS;
		upstream u { zone z 1m; server app.test:1 resolve; } server { location / { proxy_pass http://$arg_to; } } }`)})
	equal(t, "queries at load", z.count("A app.test"), 0)
	s.engine.Start()
	await(t, "queries at the start", func() string { return fmt.Sprint(z.count("A app.test")) }, "1")
}
