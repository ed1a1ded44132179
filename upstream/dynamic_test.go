package upstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// named chooses the target that a request names in its Host.
func named(r *http.Request) (upstream.Target, error) {
	return upstream.Target{Addr: r.Host, MaxConns: 1}, nil
}

func newDynamic(t *testing.T, o upstream.DynamicOptions) *upstream.Dynamic {
	t.Helper()
	d, err := upstream.NewDynamic(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func requestFor(host string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = host
	return r
}

// A Dynamic remembers the targets that were used last, with what is in flight, and forgets none that is in use.
func TestDynamicForgets(t *testing.T) {
	leaktest.Check(t)
	d := newDynamic(t, upstream.DynamicOptions{Choose: named, MaxTargets: 2, Group: upstream.Options{Name: "named"}})
	pick := func(host string, kind culvert.ErrorKind) upstream.Lease {
		t.Helper()
		l, err := d.Pick(t.Context(), requestFor(host))
		if e := errs.As(err); kind == 0 && err != nil || kind != 0 && (e == nil || e.Kind != kind || e.Target != "named") {
			t.Fatalf("%s: %v, want the kind %v", host, err, kind)
		}
		return l
	}
	state := func(want string) {
		t.Helper()
		var got []string
		for s := range d.Targets() {
			got = append(got, fmt.Sprint(s.Target.Addr, " ", s.InFlight))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("the targets are %s, want %s", got, want)
		}
	}
	a, b := pick("a:1", 0), pick("b:1", 0)
	pick("a:1", culvert.Busy) // its MaxConns
	state("[a:1 1 b:1 1]")
	if got := fmt.Sprint(d.Name(), d.Scheme(), d.InFlight(), d.Waiting()); got != "namedhttp2 0" {
		t.Errorf("name, scheme, in flight, waiting: %s", got)
	}
	pick("c:1", culvert.Busy) // both are in use
	b.Done(upstream.Outcome{Status: 200})
	c := pick("c:1", 0)
	state("[c:1 1 a:1 1]")
	a.Done(upstream.Outcome{Status: 200})
	a = pick("a:1", 0)
	if c.Addr() != "c:1" || a.Group().Name() != "named" {
		t.Errorf("picked %s of %s", c.Addr(), a.Group().Name())
	}
	if _, err := d.Pick(t.Context(), requestFor("a:1"), a); err == nil {
		t.Error("a target that was tried is picked again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain with requests in flight: %v", err)
	}
	a.Done(upstream.Outcome{Status: 200})
	c.Done(upstream.Outcome{Status: 200})
	if err := d.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	pick("a:1", culvert.Busy)
}

// The targets of a Dynamic may be named by any number of requests at a time.
func TestDynamicConcurrent(t *testing.T) {
	leaktest.Check(t)
	d := newDynamic(t, upstream.DynamicOptions{MaxTargets: 3, Choose: func(r *http.Request) (upstream.Target, error) { return upstream.Target{Addr: r.Host}, nil }})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 500 {
				l, err := d.Pick(t.Context(), requestFor(fmt.Sprintf("h%d:1", (i+n)%5)))
				if err == nil {
					l.Done(upstream.Outcome{Status: 200})
				} else if errs.As(err).Kind != culvert.Busy {
					t.Error(err)
				}
				for range d.Targets() {
				}
			}
		})
	}
	all.Wait()
	if err := d.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// What Choose returns beside a valid target is the exchange's failure, and so is an invalid one.
func TestDynamicErrors(t *testing.T) {
	leaktest.Check(t)
	for _, test := range []struct {
		target upstream.Target
		err    error
		kind   culvert.ErrorKind
		text   string
	}{
		{upstream.Target{}, errors.New("no tenant"), culvert.Internal, "no tenant"},
		{upstream.Target{}, fmt.Errorf("no: %w", &culvert.Error{Kind: culvert.Forbidden}), culvert.Forbidden, ""},
		{upstream.Target{Addr: "http://a/b"}, nil, culvert.Internal, `write "a:80"`},
		{upstream.Target{Addr: "a:1", Weight: -1}, nil, culvert.Internal, "weight"},
		{upstream.Target{Addr: "a:1", Backup: true}, nil, culvert.Internal, "backup"},
	} {
		d := newDynamic(t, upstream.DynamicOptions{Choose: func(*http.Request) (upstream.Target, error) { return test.target, test.err }})
		_, err := d.Pick(t.Context(), requestFor("a"))
		if e := errs.As(err); e == nil || e.Kind != test.kind || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%+v, %v: %v", test.target, test.err, err)
		}
	}
	for text, o := range map[string]upstream.DynamicOptions{
		"Choose is nil":       {},
		"negative MaxTargets": {Choose: named, MaxTargets: -1},
		"are not possible":    {Choose: named, Group: upstream.Options{Check: &upstream.Check{}}},
		"scheme":              {Choose: named, Group: upstream.Options{Scheme: "ftp"}},
		"with DialContext": {Choose: named, Group: upstream.Options{AllowAddr: upstream.PublicAddr,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil }}},
		"a Transport that has none": {Choose: named, Group: upstream.Options{AllowAddr: upstream.PublicAddr, Transport: http.DefaultTransport}},
	} {
		if _, err := upstream.NewDynamic(o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want %q", err, text)
		}
	}
}

// Connections are kept for the next request of a target, also across the groups that stand for the same address, and
// closed by Close.
func TestDynamicConnections(t *testing.T) {
	leaktest.Check(t)
	opened := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened++
		}
	}
	s.Start()
	defer s.Close()
	d := newDynamic(t, upstream.DynamicOptions{MaxTargets: 1, Choose: named})
	for i := range 4 {
		l, err := d.Pick(t.Context(), requestFor(s.Listener.Addr().String()))
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(l.Context(t.Context()), "GET", "http://"+l.Host()+"/", nil)
		resp, err := l.Group().Transport().RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		l.Done(upstream.Outcome{Status: 200})
		if i == 1 { // forgotten, and named again
			l, err := d.Pick(t.Context(), requestFor("a:1"))
			if err != nil {
				t.Fatal(err)
			}
			l.Done(upstream.Outcome{Status: 200})
		}
	}
	d.Close()
	s.Close()
	if opened != 1 {
		t.Errorf("%d connections", opened)
	}
}

// Clients that name one target after the other leave no more idle connections than MaxTargets, or MaxIdleConns.
func TestDynamicIdleConnections(t *testing.T) {
	for _, o := range []upstream.DynamicOptions{
		{MaxTargets: 3, Group: upstream.Options{MaxIdleConns: 1}},
		{MaxTargets: 1, Group: upstream.Options{MaxIdleConns: 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var open atomic.Int32
			o.Choose = named
			o.Group.DialContext = func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				open.Add(1)
				go func() {
					defer open.Add(-1)
					in := bufio.NewReader(far)
					_, _ = http.ReadRequest(in)
					_, _ = io.WriteString(far, "HTTP/1.1 204 No Content\r\n\r\n")
					_, _ = in.ReadByte()
				}()
				return near, nil
			}
			d := newDynamic(t, o)
			p, err := proxy.New(proxy.Options{Upstream: d})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				w := httptest.NewRecorder()
				if p.ServeHTTP(w, requestFor(fmt.Sprintf("h%d:1", i))); w.Code != 204 {
					t.Errorf("status %d", w.Code)
				}
			}
			synctest.Wait()
			if n := open.Load(); n != 3 {
				t.Errorf("%d connections are kept, want 3", n)
			}
			d.Close()
			synctest.Wait()
		})
	}
}

// PublicAddr refuses each network that is not reachable globally, however its addresses are written.
func TestPublicAddr(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.15.255.255": true, "172.32.0.0": true, "100.128.0.0": true, "2606:4700:4700::1111": true, "::ffff:8.8.8.8": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "::ffff:127.0.0.1": false,
		"::ffff:169.254.169.254": false, "::7f00:1": false, "64:ff9b::7f00:1": false,
		"::ffff:0:10.0.0.1": false, "100::1": false, "100:0:0:1::1": false, "5f00::1": false, "fec0::1": false, "4000::1": false, "3fff::1": false, "168.63.129.16": false, "2002:7f00:1::": false, "fc00::1": false, "fd00:ec2::254": false,
		"fe80::1": false, "fe80::1%eth0": false, "ff02::1": false, "2001:db8::1": false,
	} {
		if got := upstream.PublicAddr(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if upstream.PublicAddr(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// AllowAddr is called beside a Dialer's own Control, for the address that a name has, and refuses the checks as well.
func TestAllowAddrOfDialer(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, allowed := range []bool{true, false} {
		var mu sync.Mutex
		asked := ""
		g := newGroup(t, upstream.Options{
			Dialer:    &net.Dialer{},
			AllowAddr: func(a netip.Addr) bool { mu.Lock(); asked += a.String() + " "; mu.Unlock(); return allowed },
		}, upstream.Target{Addr: "localhost:" + port})
		l, err := g.Pick(t.Context(), requestFor("a"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Dial(t.Context())
		if err == nil {
			c.Close()
		}
		l.Done(upstream.Outcome{})
		mu.Lock()
		if e := errs.As(err); allowed != (err == nil) || !allowed && (e == nil || e.Kind != culvert.Forbidden) || !strings.Contains(asked, "127.0.0.1") {
			t.Errorf("allowed %v: %v, asked for %s", allowed, err, asked)
		}
		mu.Unlock()
	}
	if _, err := upstream.Dial(t.Context(), "tcp", "127.0.0.1:"+port); err == nil || !strings.Contains(err.Error(), "context of a Lease") {
		t.Errorf("Dial without a lease: %v", err)
	}
}

// The connection of a request that ends long after Close is closed then, though IdleTimeout would keep it, and also where another
// one has begun meanwhile.
func TestDynamicClosesTheLastConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{}, 2)
		rest := make(chan struct{}, 2)
		choose := func(r *http.Request) (upstream.Target, error) { return upstream.Target{Addr: r.Host}, nil }
		d := newDynamic(t, upstream.DynamicOptions{Choose: choose, Group: upstream.Options{IdleTimeout: 100 * time.Hour,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					defer func() { closed <- struct{}{} }()
					in := bufio.NewReader(far)
					_, _ = http.ReadRequest(in)
					_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
					<-rest
					_, _ = io.WriteString(far, "b")
					_, _ = in.ReadByte()
				}()
				return near, nil
			}}})
		begin := func() (upstream.Lease, *http.Response) {
			l, err := d.Pick(t.Context(), requestFor("a:1"))
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequestWithContext(l.Context(t.Context()), "GET", "http://"+l.Host()+"/", nil)
			resp, err := l.Group().Transport().RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			return l, resp
		}
		end := func(l upstream.Lease, resp *http.Response) {
			t.Helper()
			rest <- struct{}{}
			if content, err := io.ReadAll(resp.Body); err != nil || string(content) != "ab" {
				t.Errorf("content %q, %v", content, err)
			}
			resp.Body.Close()
			l.Done(upstream.Outcome{Status: 200})
			time.Sleep(time.Minute)
			select {
			case <-closed:
			default:
				t.Error("the connection is open")
			}
		}
		first, response := begin()
		d.Close()
		time.Sleep(time.Hour)
		second, other := begin()
		end(first, response)
		end(second, other)
	})
}
