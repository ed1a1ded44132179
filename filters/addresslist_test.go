package filters_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// rules parses "+network network -network": + begins a rule that allows, - one that denies.
func rules(text string) (rules []filters.AddressRule) {
	for field := range strings.FieldsSeq(text) {
		if field[0] == '+' || field[0] == '-' {
			rules = append(rules, filters.AddressRule{Allow: field[0] == '+'})
			field = field[1:]
		}
		last := &rules[len(rules)-1]
		last.Networks = append(last.Networks, netip.MustParsePrefix(field))
	}
	return rules
}

// The first rule with the address decides; other addresses are denied unless all rules deny.
func TestAddressList(t *testing.T) {
	for text, want := range map[string]string{ // addresses, ! before those that are refused
		"+10.0.0.0/8":                            "10.1.2.3 !11.0.0.1 !::1 !2001:db8::1 ::ffff:10.1.2.3 !::ffff:11.0.0.1",
		"-10.0.0.0/8":                            "!10.1.2.3 11.0.0.1 ::1 !::ffff:10.1.2.3",
		"-10.1.0.0/16 +10.0.0.0/8":               "!10.1.2.3 10.2.0.1 !11.0.0.1",
		"+10.1.0.0/16 -10.0.0.0/8":               "10.1.2.3 !10.2.0.1 !11.0.0.1",
		"+10.1.0.0/16 -10.0.0.0/8 +0.0.0.0/0":    "10.1.2.3 !10.2.0.1 11.0.0.1 !::1",
		"+192.0.2.1/24 2001:db8::/32":            "192.0.2.255 2001:db8::1 !192.0.3.1 !2001:db9::1",
		"-fe80::/10":                             "!fe80::1 !fe80::1%eth0 ::1",
		"+fe80::/10":                             "fe80::1 fe80::1%eth0 !::1",
		"-0.0.0.0/0 ::/0":                        "!10.1.2.3 !::1 !fe80::1%eth0",
		"-10.0.0.0/8 192.0.2.0/24 -::1/128":      "!10.1.2.3 !192.0.2.1 !::1 ::2",
		"+10.0.0.0/8 -10.1.0.0/16 -192.0.2.1/32": "10.1.2.3 !192.0.2.1 !192.0.2.2",
	} {
		f := good(t)(filters.AddressList(filters.AddressListOptions{Rules: rules(text)}))
		for addr := range strings.FieldsSeq(want) {
			addr, refused := strings.CutPrefix(addr, "!")
			status := 200
			if refused {
				status = 403
			}
			ctx, result := filters.WithResult(t.Context())
			resp, _ := through(f, respond("ok"), from(netip.AddrPortFrom(netip.MustParseAddr(addr), 1).String()).WithContext(ctx))
			if resp.StatusCode != status {
				t.Errorf("%s: status %d for %s", text, resp.StatusCode, addr)
			}
			var failure *culvert.Error
			if errors.As(result.Err, &failure) != refused || refused && (failure.Kind != culvert.Forbidden || failure.Status() != 403) {
				t.Errorf("%s: the result's error for %s: %v", text, addr, result.Err)
			}
		}
		for _, remote := range []string{"@", "", "/run/a.sock", "pipe"} {
			if resp, _ := through(f, respond("ok"), from(remote)); resp.StatusCode != 403 {
				t.Errorf("%s: status %d for the address %q", text, resp.StatusCode, remote)
			}
		}
	}
}

// The address is the one that RealIP has found.
func TestAddressListBehindProxies(t *testing.T) {
	chain := filters.NewChain(
		good(t)(filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})),
		good(t)(filters.AddressList(filters.AddressListOptions{Rules: rules("+192.0.2.0/24")})),
	).Then(respond("ok"))
	for _, test := range []struct {
		remote, forwarded string
		status            int
	}{{"10.0.0.1:1", "192.0.2.1", 200}, {"10.0.0.1:1", "192.0.3.1", 403}, {"10.0.0.1:1", "192.0.2.1, 192.0.3.1", 403}, {"192.0.3.1:1", "192.0.2.1", 403}, {"10.0.0.1:1", "", 403}} {
		r := from(test.remote)
		r.Header.Set("X-Forwarded-For", test.forwarded)
		w := httptest.NewRecorder()
		chain.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%+v: status %d", test, w.Code)
		}
	}
}

// The filter does not change with the caller's slices.
func TestAddressListKeepsItsRules(t *testing.T) {
	list := rules("+10.0.0.0/8")
	f := good(t)(filters.AddressList(filters.AddressListOptions{Rules: list}))
	list[0].Networks[0] = netip.MustParsePrefix("0.0.0.0/0")
	if resp, _ := through(f, respond("ok"), from("192.0.2.1:1")); resp.StatusCode != 403 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestAddressListOptions(t *testing.T) {
	for want, list := range map[string][]filters.AddressRule{
		"filters: AddressList: AddressListOptions.Rules is empty":              nil,
		"filters: AddressList: rule 1 has no networks":                         append(rules("+10.0.0.0/8"), filters.AddressRule{}),
		"filters: AddressList: a network of rule 0 is not valid":               {{Networks: []netip.Prefix{{}}}},
		"filters: AddressList: write the IPv4 network for ::ffff:10.0.0.0/104": rules("-::ffff:10.0.0.0/104"),
	} {
		bad(t, want)(filters.AddressList(filters.AddressListOptions{Rules: list}))
	}
}

// A list that denies a network serves none of its addresses, and one that allows it no other.
func FuzzAddressList(f *testing.F) {
	for _, seed := range []string{"10.0.0.1:1", "[::ffff:10.0.0.1]:1", "[fe80::1%10.0.0.1]:1", "10.0.0.1", "@", "[::10.0.0.1]:80"} {
		f.Add(seed)
	}
	allow := good(f)(filters.AddressList(filters.AddressListOptions{Rules: rules("+10.0.0.0/8")}))(quiet)
	deny := good(f)(filters.AddressList(filters.AddressListOptions{Rules: rules("-10.0.0.0/8")}))(quiet)
	f.Fuzz(func(t *testing.T, remote string) {
		at, err := netip.ParseAddrPort(remote)
		listed := err == nil && (at.Addr().Is4() || at.Addr().Is4In6()) && at.Addr().Unmap().As4()[0] == 10
		for h, want := range map[*http.Handler]bool{&allow: listed, &deny: err == nil && !listed} {
			if status, _ := limited(*h, from(remote)); (status == 200) != want {
				t.Errorf("status %d for %q", status, remote)
			}
		}
	})
}

// The administration is open to the office's network, except for the guests in it.
func ExampleAddressList() {
	list, err := filters.AddressList(filters.AddressListOptions{Rules: []filters.AddressRule{
		{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}},
		{Allow: true, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	h := list(http.NotFoundHandler())
	for _, client := range []string{"192.0.2.1:1234", "192.0.2.200:1234", "[2001:db8::1]:1234", "198.51.100.1:1234"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/admin", nil)
		r.RemoteAddr = client
		h.ServeHTTP(w, r)
		fmt.Println(client, w.Code)
	}
	// Output:
	// 192.0.2.1:1234 404
	// 192.0.2.200:1234 403
	// [2001:db8::1]:1234 404
	// 198.51.100.1:1234 403
}
