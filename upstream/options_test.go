package upstream_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
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
		{`no target that is not a backup`, upstream.Options{}, []upstream.Target{{Addr: a, Backup: true}}},
		{`targets are given beside Options.Source`, upstream.Options{Source: source}, one},
		{`scheme "ftp" is neither http nor https`, upstream.Options{Scheme: "ftp"}, one},
		{`unknown protocol 7`, upstream.Options{Protocol: 7}, one},
		{`HTTP2 needs the scheme https; cleartext HTTP/2 is H2C`, upstream.Options{Protocol: upstream.HTTP2}, one},
		{`H2C needs the scheme http; HTTP/2 over TLS is HTTP2`, upstream.Options{Protocol: upstream.H2C, Scheme: "https"}, one},
		{`SlowStart is negative`, upstream.Options{SlowStart: -1}, one},
		{`Queue is negative`, upstream.Options{Queue: -1}, one},
		{`MaxInFlight is negative`, upstream.Options{MaxInFlight: -1}, one},
		{`target "host": address host: missing port in address`, upstream.Options{}, []upstream.Target{{Addr: "host"}}},
		{`target ":80": host and port are both needed`, upstream.Options{}, []upstream.Target{{Addr: ":80"}}},
		{`target "a:": host and port are both needed`, upstream.Options{}, []upstream.Target{{Addr: "a:"}}},
		{`target "unix:run/app": the path of a unix socket must be absolute`, upstream.Options{}, []upstream.Target{{Addr: "unix:run/app"}}},
		{`target "unix:/run/app": https over a unix socket needs ServerName`, upstream.Options{Scheme: "https"}, []upstream.Target{{Addr: "unix:/run/app"}}},
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
		{`check: Interval is negative`, upstream.Options{Check: &upstream.Check{Interval: -1}}, one},
		{`check: Rise or Fall is negative`, upstream.Options{Check: &upstream.Check{Fall: -1}}, one},
		{`check: Jitter 2 is over 1`, upstream.Options{Check: &upstream.Check{Jitter: 2}}, one},
		{`check: Jitter is not a number`, upstream.Options{Check: &upstream.Check{Jitter: math.NaN()}}, one},
		{`MaxEjected -0.1 is not from 0 to 1`, upstream.Options{MaxEjected: -0.1}, one},
		{`MaxEjected 10 is not from 0 to 1`, upstream.Options{MaxEjected: 10}, one},
		{`MaxEjected NaN is not from 0 to 1`, upstream.Options{MaxEjected: math.NaN()}, one},
		{`FailRate 85 is not from 0 to 1`, upstream.Options{FailRate: 85}, one},
		{`FailWindow is negative`, upstream.Options{FailRate: 0.5, FailWindow: -1}, one},
		{`FailMinRequests is negative`, upstream.Options{FailRate: 0.5, FailMinRequests: -1}, one},
		{`FailWindow or FailMinRequests without FailRate`, upstream.Options{FailWindow: time.Minute}, one},
		{`PanicThreshold 50 is not from 0 to 1`, upstream.Options{PanicThreshold: 50}, one},
		{`FailKinds: "client gone" is never a target's failure`, upstream.Options{FailKinds: []culvert.ErrorKind{culvert.DialFailed, culvert.ClientGone}}, one},
		{`FailKinds: "internal error" is never a target's failure`, upstream.Options{FailKinds: []culvert.ErrorKind{culvert.Internal}}, one},
		{`FailKinds: "busy" is never a target's failure`, upstream.Options{FailKinds: []culvert.ErrorKind{culvert.Busy}}, one},
		{`FailKinds: "kind 99" is never a target's failure`, upstream.Options{FailKinds: []culvert.ErrorKind{99}}, one},
		{`FailStatuses: 101 is not from 200 to 999`, upstream.Options{FailStatuses: []int{500, 101}}, one},
		{`FailStatuses: 1000 is not from 200 to 999`, upstream.Options{FailStatuses: []int{1000}}, one},
	}
	for _, test := range tests {
		test.o.Name = "app"
		g, err := upstream.New(test.o, test.targets...)
		if want := `upstream "app": ` + test.want; g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// An invalid set changes nothing.
func TestBadSet(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b")...)
	if err := p.g.Set(upstream.Target{Addr: "c"}); err == nil || err.Error() != `upstream "app": target "c": address c: missing port in address` {
		t.Errorf("error %v", err)
	}
	p.want("a b a b")
}

func TestBadSources(t *testing.T) {
	for want, make := range map[string]func() (upstream.Source, error){
		`upstream: DNS "a": address a: missing port in address`:            func() (upstream.Source, error) { return upstream.DNS("a", upstream.DNSOptions{}) },
		`upstream: DNS ":80": host and port are both needed`:               func() (upstream.Source, error) { return upstream.DNS(":80", upstream.DNSOptions{}) },
		`upstream: DNS "a:0": port "0" is no number from 1 to 65535`:       func() (upstream.Source, error) { return upstream.DNS("a:0", upstream.DNSOptions{}) },
		`upstream: DNS "a b:1": "a b" is neither an IP address nor a name`: func() (upstream.Source, error) { return upstream.DNS("a b:1", upstream.DNSOptions{}) },
		`upstream: DNS "http://a": an address has neither a scheme nor a path: write "a:80", with Target.Scheme "http"`: func() (upstream.Source, error) {
			return upstream.DNS("http://a", upstream.DNSOptions{})
		},
		`upstream: SRV: "x:80" is neither an IP address nor a name`:   func() (upstream.Source, error) { return upstream.SRV("x:80", upstream.DNSOptions{}) },
		`upstream: SRV: the name ".." has an empty label`:             func() (upstream.Source, error) { return upstream.SRV("..", upstream.DNSOptions{}) },
		`upstream: SRV "127.0.0.1": an IP address has no SRV records`: func() (upstream.Source, error) { return upstream.SRV("127.0.0.1", upstream.DNSOptions{}) },
		`upstream: DNSOptions.Target: negative weight -1`: func() (upstream.Source, error) {
			return upstream.DNS("a:1", upstream.DNSOptions{Target: upstream.Target{Weight: -1}})
		},
		`upstream: SRV: no name`: func() (upstream.Source, error) { return upstream.SRV("", upstream.DNSOptions{}) },
		`upstream: DNS: intervals from 1m0s to 1s`: func() (upstream.Source, error) {
			return upstream.DNS("a:1", upstream.DNSOptions{MinInterval: time.Minute, MaxInterval: time.Second})
		},
	} {
		if s, err := make(); s != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// An address that can't be dialled, or that means something else, is refused at once, and not with each
// request.
func TestBadAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"a:0":             `port "0" is no number from 1 to 65535`,
		"a:65536":         `port "65536" is no number from 1 to 65535`,
		"a:-1":            `port "-1" is no number from 1 to 65535`,
		"a:+80":           `port "+80" is no number from 1 to 65535`,
		"a:http":          `port "http" is no number from 1 to 65535`,
		"a:80 ":           `port "80 " is no number from 1 to 65535`,
		"a:80?x":          `an address has neither a scheme nor a path: write "a:80"`,
		"a:80#x":          `an address has neither a scheme nor a path: write "a:80"`,
		"a b:80":          `"a b" is neither an IP address nor a name`,
		"a\r\nb:80":       `"a\r\nb" is neither an IP address nor a name`,
		"a/b:80":          `"a/b" is neither an IP address nor a name`,
		"*:80":            `"*" is neither an IP address nor a name`,
		"%41:80":          `"%41" is neither an IP address nor a name`,
		"a\xff:80":        `"a\xff" is neither an IP address nor a name`,
		"a..b:80":         `the name "a..b" has an empty label`,
		".:80":            `the name "." has an empty label`,
		"[::1%]:80":       `"::1%" has no valid zone`,
		"[fe80::1%a/]:80": `"fe80::1%a/" has no valid zone`,
		"127.0.0.1%lo:80": `"127.0.0.1%lo" has no valid zone`,
		"unix:/run/a\x00": `the path of a unix socket has a NUL byte`,
	} {
		g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr})
		if want := fmt.Sprintf(`upstream "": target %q: %s`, addr, want); g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, addr := range []string{"a:1", "a.b.:65535", "a_b-c:80", "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "bücher.example:80", "unix:/run/a b"} {
		if g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr}); err != nil {
			t.Error(err)
		} else {
			g.Close()
		}
	}
}

// The error for a URL or an address with a path says what to write.
func TestURLInAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"host:443/base":         `write "host:443", with Target.Path "/base"`,
		"host:443/":             `write "host:443"`,
		"http://host":           `write "host:80", with Target.Scheme "http"`,
		"http://host:8080/":     `write "host:8080", with Target.Scheme "http"`,
		"https://[::1]/a/b/?q":  `write "[::1]:443", with Target.Scheme "https", with Target.Path "/a/b"`,
		"https://host:8443/a/":  `write "host:8443", with Target.Scheme "https", with Target.Path "/a"`,
		"tcp://host:53":         `write "host:53"`,
		"grpc://host":           `write "host:port"`,
		"http://user:pw@host:1": `write "host:1", with Target.Scheme "http"`,
	} {
		g, err := upstream.New(upstream.Options{}, upstream.Target{Addr: addr})
		shown := strings.Replace(addr, "user:pw@", "xxxxx@", 1)
		want := fmt.Sprintf(`upstream "": target %q: an address has neither a scheme nor a path: %s`, shown, want)
		if g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A check that can't be sent is refused: it would make all targets unhealthy.
func TestBadCheck(t *testing.T) {
	for want, c := range map[string]upstream.Check{
		`no Path or GRPC for Method, Scheme, TLSConfig, Host, Header, Healthy or HealthyBody`:   {Host: "a"},
		`no Path or GRPC for Method, Scheme, TLSConfig, Host, Header, Healthy or HealthyBody `:  {Header: http.Header{}},
		`no Path or GRPC for Method, Scheme, TLSConfig, Host, Header, Healthy or HealthyBody  `: {Healthy: func(int) bool { return true }},
		`path "/a b": blank or control character in the request target`:                         {Path: "/a b"},
		`path "/\r\nX: y": blank or control character in the request target`:                    {Path: "/\r\nX: y"},
		`path "/a#b" has a fragment`:                     {Path: "/a#b"},
		`path: parse "/%zz": invalid URL escape "%zz"`:   {Path: "/%zz"},
		`Host: invalid host "a\r\nX: y"`:                 {Path: "/", Host: "a\r\nX: y"},
		`header: invalid name "a b"`:                     {Path: "/", Header: http.Header{"a b": {"c"}}},
		`header: invalid value "a\nb" of X-A`:            {Path: "/", Header: http.Header{"X-A": {"a\nb"}}},
		`header: Content-Length is not possible here`:    {Path: "/", Header: http.Header{"Content-Length": {"1"}}},
		`header: transfer-encoding is not possible here`: {Path: "/", Header: http.Header{"transfer-encoding": {"chunked"}}},
		`header: Upgrade is not possible here`:           {Path: "/", Header: http.Header{"Upgrade": {"websocket"}}},
		`header: Connection is not possible here`:        {Path: "/", Header: http.Header{"Connection": {"close"}}},
		`header: Host is not possible here`:              {Path: "/", Header: http.Header{"Host": {"a"}}},
	} {
		g, err := upstream.New(upstream.Options{Check: &c}, upstream.Target{Addr: "a:1"})
		if want := `upstream "": check: ` + strings.TrimSpace(want); g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	good := upstream.Check{Path: "//a/%2F?q=%zz", Host: "a:80", Header: http.Header{"Te": {"trailers"}, "X-A": {"b"}}, Interval: time.Hour}
	g, err := upstream.New(upstream.Options{Check: &good}, upstream.Target{Addr: "a:1"})
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}

// A cookie that browsers would drop is refused.
func TestBadSticky(t *testing.T) {
	for want, o := range map[string]upstream.StickyOptions{
		`MaxAge 1ms is less than a second`:                                {MaxAge: time.Millisecond},
		`unknown SameSite 77`:                                             {SameSite: 77},
		`unknown SameSite -1`:                                             {SameSite: -1},
		`SameSite None is not possible with Insecure`:                     {SameSite: http.SameSiteNoneMode, Insecure: true},
		`the Path "x" does not begin with /`:                              {Path: "x"},
		`option Insecure is not possible with the name "__Secure-a"`:      {Name: "__Secure-a", Insecure: true},
		`option Insecure is not possible with the name "__Host-a"`:        {Name: "__Host-a", Insecure: true},
		`the Domain "a.example" is not possible with the name "__host-a"`: {Name: "__host-a", Domain: "a.example"},
		`the Path "/a" is not possible with the name "__Host-a"`:          {Name: "__Host-a", Path: "/a"},
	} {
		g, err := upstream.New(upstream.Options{Balance: upstream.Sticky(o)}, upstream.Target{Addr: "a:1"})
		if want := `upstream "": Sticky: ` + want; g != nil || err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, o := range []upstream.StickyOptions{{Name: "__Host-a"}, {Name: "__Secure-a", Domain: "a.example", Path: "/a"}, {SameSite: http.SameSiteNoneMode}, {SameSite: http.SameSiteDefaultMode}} {
		if g, err := upstream.New(upstream.Options{Balance: upstream.Sticky(o)}, upstream.Target{Addr: "a:1"}); err != nil {
			t.Error(err)
		} else {
			g.Close()
		}
	}
}
