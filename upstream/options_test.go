package upstream_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

func TestBadOptions(t *testing.T) {
	const a, b = "a:1", "b:1"
	one := []upstream.Target{{Addr: a}}
	backup := []upstream.Target{{Addr: a}, {Addr: b, Backup: true}}
	source, err := upstream.DNS("a:1", upstream.DNSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		want    string
		o       upstream.Options
		targets []upstream.Target
	}{
		{`no target that is not a backup`, upstream.Options{}, nil},
		{`no target that is not a backup`, upstream.Options{}, []upstream.Target{{Addr: a, Backup: true}}},
		{`targets are given beside Options.Source`, upstream.Options{Source: source}, one},
		{`scheme "ftp" is neither http nor https`, upstream.Options{Scheme: "ftp"}, one},
		{`unknown protocol 7`, upstream.Options{Protocol: 7}, one},
		{`HTTP2 needs the scheme https; cleartext HTTP/2 is H2C`, upstream.Options{Protocol: upstream.HTTP2}, one},
		{`H2C needs the scheme http; HTTP/2 over TLS is HTTP2`, upstream.Options{Protocol: upstream.H2C, Scheme: "https"}, one},
		{`DialTimeout is negative`, upstream.Options{DialTimeout: -1}, one},
		{`Queue is negative`, upstream.Options{Queue: -1}, one},
		{`MaxInFlight is negative`, upstream.Options{MaxInFlight: -1}, one},
		{`target "host": address host: missing port in address`, upstream.Options{}, []upstream.Target{{Addr: "host"}}},
		{`target ":80": host and port are both needed`, upstream.Options{}, []upstream.Target{{Addr: ":80"}}},
		{`target "a:": host and port are both needed`, upstream.Options{}, []upstream.Target{{Addr: "a:"}}},
		{`target "unix:run/app": the path of a unix socket must be absolute`, upstream.Options{}, []upstream.Target{{Addr: "unix:run/app"}}},
		{`target "unix:/run/app": https over a unix socket needs TLSConfig.ServerName`, upstream.Options{Scheme: "https"}, []upstream.Target{{Addr: "unix:/run/app"}}},
		{`target "a:1": negative weight -1`, upstream.Options{}, []upstream.Target{{Addr: a, Weight: -1}}},
		{`target "a:1": weight 65536 is over 65535`, upstream.Options{}, []upstream.Target{{Addr: a, Weight: 65536}}},
		{`target "a:1": negative FailTimeout -1s`, upstream.Options{}, []upstream.Target{{Addr: a, FailTimeout: -time.Second}}},
		{`target "a:1": negative MaxConns -1`, upstream.Options{}, []upstream.Target{{Addr: a, MaxConns: -1}}},
		{`target "b:1": a backup is not possible with IPHash`, upstream.Options{Balance: upstream.IPHash()}, backup},
		{`target "b:1": a backup is not possible with Hash`, upstream.Options{Balance: upstream.Hash(func(*http.Request) string { return "" })}, backup},
		{`Hash has no key function`, upstream.Options{Balance: upstream.Hash(nil)}, one},
		{`HashModulo has no key function`, upstream.Options{Balance: upstream.HashModulo(nil)}, one},
		{`Sticky: http: invalid Cookie.Name`, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Name: "a b"})}, one},
		{`Sticky: negative MaxAge -1s`, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{MaxAge: -time.Second})}, one},
		{`Sticky stands in its own Otherwise`, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Otherwise: upstream.Sticky(upstream.StickyOptions{})})}, one},
		{`check: path "healthz" does not begin with /`, upstream.Options{Check: &upstream.Check{Path: "healthz"}}, one},
		{`check: Interval or Timeout is negative`, upstream.Options{Check: &upstream.Check{Interval: -1}}, one},
		{`check: Rise or Fall is negative`, upstream.Options{Check: &upstream.Check{Fall: -1}}, one},
		{`check: Jitter 2 is over 1`, upstream.Options{Check: &upstream.Check{Jitter: 2}}, one},
	}
	for _, test := range tests {
		test.o.Name = "app"
		g, err := upstream.New(test.o, test.targets...)
		if want := `upstream "app": ` + test.want; g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A set that can't be used changes nothing.
func TestBadSet(t *testing.T) {
	p := over(t, upstream.Options{}, addrs("a b")...)
	if err := p.g.Set(upstream.Target{Addr: "c"}); err == nil || err.Error() != `upstream "app": target "c": address c: missing port in address` {
		t.Errorf("error %v", err)
	}
	if err := p.g.Set(); err == nil {
		t.Error("an empty set was taken")
	}
	p.want("a b a b")
}

func TestBadSources(t *testing.T) {
	for want, make := range map[string]func() (upstream.Source, error){
		`upstream: DNS: address a: missing port in address`:  func() (upstream.Source, error) { return upstream.DNS("a", upstream.DNSOptions{}) },
		`upstream: DNS ":80": host and port are both needed`: func() (upstream.Source, error) { return upstream.DNS(":80", upstream.DNSOptions{}) },
		`upstream: SRV: no name`:                             func() (upstream.Source, error) { return upstream.SRV("", upstream.DNSOptions{}) },
		`upstream: DNS: intervals from 1m0s to 1s`: func() (upstream.Source, error) {
			return upstream.DNS("a:1", upstream.DNSOptions{MinInterval: time.Minute, MaxInterval: time.Second})
		},
	} {
		if s, err := make(); s != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
