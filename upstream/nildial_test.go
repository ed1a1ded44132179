package upstream_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

func noConn(context.Context, string, string) (net.Conn, error) { return nil, nil }

// A DialContext that returns neither a connection nor an error is a dial error, as in net/http: of an
// exchange, of a Dial and of a check, over connections of each kind.
func TestDialContextWithoutAConnection(t *testing.T) {
	const want = "upstream: Options.DialContext returned (nil, nil)"
	for _, scheme := range []string{"http", "https"} {
		g := newGroup(t, upstream.Options{Scheme: scheme, DialContext: noConn}, upstream.Target{Addr: "a:1"})
		if got := exchange(t, g); got != want {
			t.Errorf("%s: an exchange: %q", scheme, got)
		}
		if _, err := g.Dial(t.Context(), "tcp", "a:1"); err == nil || err.Error() != want {
			t.Errorf("%s: Dial: %v", scheme, err)
		}
	}
	for _, path := range []string{"", "/"} {
		synctest.Test(t, func(t *testing.T) {
			changes := make(chan error, 8)
			newGroup(t, upstream.Options{DialContext: noConn, Check: &upstream.Check{
				Path: path, Fall: 1, OnChange: func(_ string, _ bool, err error) { changes <- err },
			}}, upstream.Target{Addr: "a:1"})
			time.Sleep(time.Minute)
			synctest.Wait()
			select {
			case err := <-changes:
				if err == nil || err.Error() != want {
					t.Errorf("a check of %q: %v", path, err)
				}
			default:
				t.Errorf("a check of %q has not failed", path)
			}
		})
	}
}

// The lookup fails if a Resolver's Dial panics, or returns neither a connection nor an error: package
// net calls it on goroutines of its own, where either would end the program.
func TestResolverDialWithoutAConnection(t *testing.T) {
	warmResolver(t)
	for name, test := range map[string]struct {
		dial   func(context.Context, string, string) (net.Conn, error)
		logged int
	}{
		"upstream: DNSOptions.Resolver.Dial returned (nil, nil)": {noConn, 0},
		"panic: a bug": {func(context.Context, string, string) (net.Conn, error) { panic("a bug") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			log := logs(t)
			synctest.Test(t, func(t *testing.T) {
				failures := make(chan error, 100)
				source, err := upstream.DNS("app.example.:80", upstream.DNSOptions{
					Resolver: &net.Resolver{PreferGo: true, Dial: test.dial}, OnError: func(err error) { failures <- err }})
				if err != nil {
					t.Fatal(err)
				}
				newGroup(t, upstream.Options{Source: source})
				if err := <-failures; !strings.Contains(err.Error(), name) {
					t.Errorf("the lookup: %v", err)
				}
				synctest.Wait()
			})
			if n := log.with("a bug"); min(n, 1) != test.logged {
				t.Errorf("%d panics were logged", n)
			}
		})
	}
}
