package filters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

func trusting(networks ...string) (list []netip.Prefix) {
	for _, n := range networks {
		list = append(list, netip.MustParsePrefix(n))
	}
	return list
}

// The rightmost address that is not trusted is the client's, and what is to the left of it does not matter. The
// fields of a peer that is not trusted are ignored.
func TestRealIP(t *testing.T) {
	const peer = "10.0.0.1:999"
	for _, test := range []struct {
		name, field, peer string
		fields            []string
		want              string // the client, then what the target receives
	}{
		{"one proxy", "", peer, []string{"X-Forwarded-For", "203.0.113.5"}, "203.0.113.5 | 203.0.113.5, 10.0.0.1 | example.com | http"},
		{"made up on the left", "", peer, []string{"X-Forwarded-For", "1.1.1.1, 127.0.0.1, 203.0.113.5"}, "203.0.113.5 | 203.0.113.5, 10.0.0.1 | example.com | http"},
		{"two proxies", "", peer, []string{"X-Forwarded-For", "1.1.1.1, 203.0.113.5, 10.9.9.9"}, "203.0.113.5 | 203.0.113.5, 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"two lines", "", peer, []string{"X-Forwarded-For", "203.0.113.5", "X-Forwarded-For", "10.9.9.9,"}, "10.0.0.1 | 10.0.0.1 | example.com | http"},
		{"two good lines", "", peer, []string{"X-Forwarded-For", "203.0.113.5", "X-Forwarded-For", "10.9.9.9"}, "203.0.113.5 | 203.0.113.5, 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"all are trusted", "", peer, []string{"X-Forwarded-For", "10.1.1.1, 10.9.9.9"}, "10.1.1.1 | 10.1.1.1, 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"no field", "", peer, nil, "10.0.0.1 | 10.0.0.1 | example.com | http"},
		{"garbage ends the search", "", peer, []string{"X-Forwarded-For", "203.0.113.5, <script>, 10.9.9.9"}, "10.9.9.9 | 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"ports and IPv6", "", peer, []string{"X-Forwarded-For", "[2001:db8::1]:443, 10.9.9.9:80"}, "2001:db8::1 | 2001:db8::1, 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"IPv4 in IPv6", "", "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For", "::ffff:203.0.113.5"}, "203.0.113.5 | 203.0.113.5, ::ffff:10.0.0.1 | example.com | http"},
		{"a zone", "", peer, []string{"X-Forwarded-For", "fe80::1%eth0"}, "fe80::1 | fe80::1, 10.0.0.1 | example.com | http"},
		{"host and proto", "", peer, []string{"X-Forwarded-For", "203.0.113.5", "X-Forwarded-Proto", "http, https", "X-Forwarded-Host", "made.up, shop.example:8443"},
			"203.0.113.5 | 203.0.113.5, 10.0.0.1 | shop.example:8443 | https"},
		{"bad host and proto", "", peer, []string{"X-Forwarded-For", "203.0.113.5", "X-Forwarded-Proto", "javascript", "X-Forwarded-Host", "a/b<c>"},
			"203.0.113.5 | 203.0.113.5, 10.0.0.1 | example.com | http"},
		{"an untrusted peer", "", "198.51.100.7:1", []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "made.up", "Forwarded", "for=1.1.1.1", "X-Real-IP", "1.1.1.1",
			"X-Forwarded-Port", "1", "X_Forwarded_For", "1.1.1.1", "X-Original-URL", "/admin"},
			"198.51.100.7 | 198.51.100.7 | example.com | http"},
		{"a field of one address", "X-Real-IP", peer, []string{"X-Real-IP", "203.0.113.5", "X-Forwarded-For", "1.1.1.1"}, "203.0.113.5 | 203.0.113.5, 10.0.0.1 | example.com | http"},
		{"Forwarded", "Forwarded", peer, []string{"Forwarded", `for=1.1.1.1;host=made.up, For="[2001:db8::1]:443";Host="shop.example";proto=HTTPS, for=10.9.9.9;proto=http`},
			"2001:db8::1 | 2001:db8::1, 10.9.9.9, 10.0.0.1 | shop.example | https"},
		{"Forwarded, unknown", "Forwarded", peer, []string{"Forwarded", "for=203.0.113.5, for=unknown, for=10.9.9.9"}, "10.9.9.9 | 10.9.9.9, 10.0.0.1 | example.com | http"},
		{"Forwarded, broken", "Forwarded", peer, []string{"Forwarded", `for=203.0.113.5;host="a`}, "10.0.0.1 | 10.0.0.1 | example.com | http"},
		{"Forwarded, no =", "Forwarded", peer, []string{"Forwarded", `203.0.113.5`}, "10.0.0.1 | 10.0.0.1 | example.com | http"},
		{"Forwarded, quotes", "Forwarded", peer, []string{"Forwarded", `for="203.0.113.5";ext="a\",for=1.1.1.1"`}, "203.0.113.5 | 203.0.113.5, 10.0.0.1 | example.com | http"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: trusting("10.0.0.0/8"), Field: test.field}))
			u, err := upstream.New(upstream.Options{}, upstream.Target{Addr: "a:1"})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			var got string
			p, err := proxy.New(proxy.Options{Upstream: u, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				got = strings.Join([]string{r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Host"), r.Header.Get("X-Forwarded-Proto")}, " | ")
				if r.Header.Get("X-Real-IP") != "" || r.Header.Get("Forwarded") != "" {
					t.Errorf("the target received %v", r.Header)
				}
				return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			r := get(test.fields...)
			r.RemoteAddr = test.peer
			f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.name == "an untrusted peer" && len(r.Header) > 0 {
					t.Errorf("the filter left %v", r.Header)
				}
				p.ServeHTTP(w, r)
				got = fmt.Sprint(filters.ClientAddr(r), " | ", got)
			})).ServeHTTP(httptest.NewRecorder(), r)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The logs inside of RealIP show the client that it has found.
func TestRealIPInLogs(t *testing.T) {
	log := make(lines, 4)
	realIP := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: trusting("10.0.0.0/8")}))
	chain := filters.NewChain(realIP, filters.CombinedLog(log))
	for peer, want := range map[string]string{"10.0.0.1:1": "203.0.113.5 - - [", "198.51.100.7:1": "198.51.100.7 - - ["} {
		r := get("X-Forwarded-For", "203.0.113.5")
		r.RemoteAddr = peer
		chain.Then(respond("ok")).ServeHTTP(httptest.NewRecorder(), r)
		if got := <-log; !strings.HasPrefix(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
}

// A client that is not trusted can't forge its address in another spelling of Field, which targets read as Field.
func TestRealIPRemovesEachSpellingOfField(t *testing.T) {
	f := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: trusting("10.0.0.0/8"), Field: "CF-Connecting-IP"}))
	r := get()
	r.RemoteAddr = "198.51.100.7:1"
	r.Header = http.Header{"Cf-Connecting-Ip": {"1.1.1.1"}, "Cf_connecting_ip": {"1.1.1.1"}, "X-Other": {"a"}}
	through(f, func(_ http.ResponseWriter, r *http.Request) {
		if len(r.Header) != 1 || r.Header["X-Other"] == nil {
			t.Errorf("left %v", r.Header)
		}
	}, r)
}

func TestBadRealIP(t *testing.T) {
	bad(t, "filters: RealIP: RealIPOptions.Trusted is empty")(filters.RealIP(filters.RealIPOptions{}))
	bad(t, "filters: RealIP: a network is not valid")(filters.RealIP(filters.RealIPOptions{Trusted: make([]netip.Prefix, 1)}))
}

// The client's address is never one to the left of an address that is not trusted.
func FuzzRealIP(f *testing.F) {
	for _, seed := range []string{"1.1.1.1, 203.0.113.5", `for=1.1.1.1, for="[::1]:80"`, ",,", "[", `for="\`, "unknown"} {
		f.Add(seed)
	}
	prefixes := trusting("10.0.0.0/8")
	f.Fuzz(func(t *testing.T, value string) {
		for field, line := range map[string]string{"X-Forwarded-For": value + ", 203.0.113.5", "Forwarded": value + ", for=203.0.113.5"} {
			filter := good(t)(filters.RealIP(filters.RealIPOptions{Trusted: prefixes, Field: field}))
			r := get()
			r.Header[field] = []string{line}
			r.RemoteAddr = "10.0.0.1:1"
			through(filter, func(_ http.ResponseWriter, r *http.Request) {
				if got := filters.ClientAddr(r).String(); got != "203.0.113.5" && (field != "Forwarded" || got != "10.0.0.1") {
					t.Errorf("%s %q: client %s", field, line, got)
				}
			}, r)
		}
	})
}
