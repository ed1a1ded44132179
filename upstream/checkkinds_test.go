package upstream_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// Fields of a Check that do not go together are errors.
func TestCheckCombinations(t *testing.T) {
	yes := func(context.Context, upstream.Target) error { return nil }
	tcp, socket := upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "unix:/s"}
	named := &tls.Config{ServerName: "a"}
	for _, test := range []struct {
		scheme string
		target upstream.Target
		check  upstream.Check
		want   string // "": no error
	}{
		{"", tcp, upstream.Check{Port: 8081}, ""},
		{"", tcp, upstream.Check{Port: 8081, Func: yes}, "beside Func"},
		{"", tcp, upstream.Check{Path: "/", Func: yes}, "beside Func"},
		{"", tcp, upstream.Check{GRPC: true, Func: yes}, "beside Func"},
		{"", tcp, upstream.Check{Host: "a", Func: yes}, "beside Func"},
		{"", socket, upstream.Check{Func: yes}, ""},
		{"", tcp, upstream.Check{Port: 65536}, "port 65536"},
		{"", tcp, upstream.Check{Port: -1}, "port -1"},
		{"", socket, upstream.Check{Port: 1}, "a unix socket has no port"},
		{"", tcp, upstream.Check{Method: "HEAD"}, "no Path or GRPC"},
		{"", tcp, upstream.Check{Scheme: "https"}, "no Path or GRPC"},
		{"", tcp, upstream.Check{HealthyBody: func([]byte) bool { return true }}, "no Path or GRPC"},
		{"", tcp, upstream.Check{Path: "/", Method: "HEAD"}, ""},
		{"", tcp, upstream.Check{Path: "/", Method: "HEAD", HealthyBody: func([]byte) bool { return true }}, "no body"},
		{"", tcp, upstream.Check{Path: "/", Method: "CONNECT"}, "CONNECT"},
		{"", tcp, upstream.Check{Path: "/", Method: "G T"}, "invalid method"},
		{"", tcp, upstream.Check{Path: "/", Scheme: "ftp"}, `scheme "ftp"`},
		{"", tcp, upstream.Check{Path: "/", TLSConfig: named}, "needs the scheme https"},
		{"https", tcp, upstream.Check{Path: "/", TLSConfig: named}, ""},
		{"https", tcp, upstream.Check{Path: "/", Scheme: "http", TLSConfig: named}, "needs the scheme https"},
		{"", socket, upstream.Check{Path: "/", Scheme: "https"}, "needs Check.TLSConfig.ServerName"},
		{"", socket, upstream.Check{Path: "/", Scheme: "https", TLSConfig: named}, ""},
		{"", tcp, upstream.Check{GRPC: true, Path: "/"}, "beside GRPC"},
		{"", tcp, upstream.Check{GRPC: true, Healthy: func(int) bool { return true }}, "beside GRPC"},
		{"", tcp, upstream.Check{GRPC: true, Header: http.Header{"Te": {"trailers"}}}, "GRPC sets Te"},
		{"", tcp, upstream.Check{GRPC: true, GRPCService: strings.Repeat("a", 1025)}, "1024 bytes"},
		{"", tcp, upstream.Check{GRPC: true, GRPCService: "\xff"}, "not UTF-8"},
		{"", tcp, upstream.Check{GRPCService: "a"}, "without GRPC"},
		{"", tcp, upstream.Check{GRPC: true, GRPCService: "a", Host: "a", Port: 2}, ""},
	} {
		test.target.Down = true // it is not checked
		g, err := upstream.New(upstream.Options{Scheme: test.scheme, Check: &test.check}, test.target)
		if err == nil {
			g.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v in a group of %q: error %v, want %q", test.check, test.scheme, err, test.want)
		}
	}
}

// A check sends its method to its port, and a redirect is a response as any other. The result is in Status.
func TestCheckMethodAndPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 302}}
		g := newGroup(t, upstream.Options{Transport: probes, Check: &upstream.Check{
			Path: "/h", Method: "OPTIONS", Port: 9000, Jitter: -1, Healthy: func(status int) bool { return status == 200 },
		}}, upstream.Target{Addr: "a:1"})
		synctest.Wait()
		if got := fmt.Sprint(probes.requests); got != "[OPTIONS http://a:9000/h  ]" && got != "[OPTIONS http://a:9000/h a:9000 ]" {
			t.Errorf("sent %s", got)
		}
		if s := statusOf(g); !s.Healthy || fmt.Sprint(s.CheckErr) != "status 302" {
			t.Errorf("after one bad check: %+v", s)
		}
		probes.set("a", 200)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := statusOf(g); s.CheckErr != nil {
			t.Errorf("after a good check: %+v", s)
		}
	})
}

func statusOf(g *upstream.Group) (first upstream.Status) {
	for s := range g.Targets() {
		return s
	}
	return first
}

// HealthyBody gets the body, 64 KiB of it at most, and a body that is cut is bad.
func TestCheckBody(t *testing.T) {
	endless := func() io.Reader { return io.MultiReader(strings.NewReader("ok"), endlessZeros{}) }
	for _, test := range []struct {
		name string
		body func() io.Reader
		want string // CheckErr
		size int    // of the body that HealthyBody gets
	}{
		{"good", func() io.Reader { return strings.NewReader("ok, all") }, "<nil>", 7},
		{"bad", func() io.Reader { return strings.NewReader("down" + strings.Repeat("!", 100)) }, `unexpected body "down` + strings.Repeat("!", 60) + `"`, 104},
		{"cut", func() io.Reader { return io.MultiReader(strings.NewReader("ok"), errorReader{}) }, "body: cut", 0},
		{"endless", endless, "<nil>", 64 << 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			size := 0
			match := regexp.MustCompile("^ok").Match
			g := newGroup(t, upstream.Options{
				Transport: roundTripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(test.body())}, nil
				}),
				Check: &upstream.Check{Path: "/", HealthyBody: func(body []byte) bool { size = len(body); return match(body) }},
			}, upstream.Target{Addr: "a:1"})
			time.Sleep(time.Second)
			synctest.Wait()
			if got := fmt.Sprint(statusOf(g).CheckErr); got != test.want || size != test.size {
				t.Errorf("%s: error %s with a body of %d bytes, want %s with %d", test.name, got, size, test.want, test.size)
			}
		})
	}
}

type endlessZeros struct{}

func (endlessZeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errors.New("cut") }

// HealthyBody gets a body that arrives over the group's own connections, and HEAD has none.
func TestCheckBodyOfServer(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		fmt.Fprint(w, "ready")
	}))
	defer s.Close()
	for _, method := range []string{"", "HEAD", "POST"} {
		checked := make(chan error, 1)
		check := upstream.Check{Path: "/", Method: method, Interval: time.Millisecond, Fall: 1}
		if method != "HEAD" {
			check.HealthyBody = func(body []byte) bool { return string(body) == "ready" }
		}
		check.Healthy = func(status int) bool {
			select {
			case checked <- nil: // a good one precedes
			default:
			}
			return status == 200
		}
		check.OnChange = func(_ string, _ bool, err error) { t.Errorf("%q: %v", method, err) }
		g := newGroup(t, upstream.Options{Check: &check}, upstream.Target{Addr: s.Listener.Addr().String()})
		for range 3 {
			wiretest.Await(t, checked, "a check")
		}
		g.Close()
	}
}

// A check's function gets the target and a time, and its panics do not count.
func TestCheckFunc(t *testing.T) {
	logs(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards what follows
		var err error
		var late, broken bool
		var got upstream.Target
		g := newGroup(t, upstream.Options{Check: &upstream.Check{Jitter: -1, Timeout: time.Second, Func: func(ctx context.Context, target upstream.Target) error {
			mu.Lock()
			defer mu.Unlock()
			got = target
			if broken {
				panic("a fault of the function")
			}
			if late {
				<-ctx.Done()
			}
			return err
		}}}, upstream.Target{Addr: "a:1", Weight: 7})
		step := func(seconds int, want string, healthy bool) {
			t.Helper()
			time.Sleep(time.Duration(seconds) * time.Second)
			synctest.Wait()
			if s := statusOf(g); fmt.Sprint(s.CheckErr) != want || s.Healthy != healthy {
				t.Errorf("%+v, want the error %s and healthy %v", s, want, healthy)
			}
		}
		step(1, "<nil>", true)
		mu.Lock()
		if got.Addr != "a:1" || got.Weight != 7 {
			t.Errorf("the target is %+v", got)
		}
		err = errors.New("lag of 7s")
		mu.Unlock()
		step(5, "lag of 7s", true)
		step(10, "lag of 7s", false)
		mu.Lock()
		err = nil
		mu.Unlock()
		step(10, "<nil>", true)
		mu.Lock()
		broken = true
		mu.Unlock()
		step(60, "<nil>", true)
		mu.Lock()
		broken, late = false, true
		mu.Unlock()
		step(30, "context deadline exceeded", false) // though the function returned nil
	})
}

// A check over TLS of its own, at a port of its own, verifies the name of its own; the target speaks cleartext.
func TestCheckTLS(t *testing.T) {
	leaktest.Check(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = wiretest.Quiet()
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, digits, _ := net.SplitHostPort(s.Listener.Addr().String())
	port, _ := strconv.Atoi(digits)
	for name, want := range map[string]string{"example.com": "", "wrong.test": "certificate is valid for"} {
		ended := make(chan string, 1)
		report := func(text string) {
			select {
			case ended <- text:
			default:
			}
		}
		g := newGroup(t, upstream.Options{Check: &upstream.Check{
			Path: "/", Scheme: "https", Port: port, TLSConfig: &tls.Config{RootCAs: roots, ServerName: name}, Interval: time.Millisecond, Fall: 1,
			Healthy:  func(status int) bool { report(""); return status == 200 },
			OnChange: func(_ string, _ bool, err error) { report(err.Error()) },
		}}, upstream.Target{Addr: "127.0.0.1:1"})
		got := wiretest.Await(t, ended, "a check")
		g.Close()
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// grpcTarget responds to health checks with what it holds: a message, or a response of its own.
type grpcTarget struct {
	respond atomic.Pointer[func(http.ResponseWriter)]
	request atomic.Pointer[string]
}

func (s *grpcTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := fmt.Sprintf("%s %s %s %s %s %q", r.Method, r.URL.Path, r.Proto, r.Header.Get("Content-Type"), r.Header.Get("Te"), body)
	s.request.Store(&line)
	(*s.respond.Load())(w)
}

// message responds with one gRPC message, and the trailer grpc-status.
func message(m []byte, status string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(m))}, m...))
		if status != "" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", status)
		}
	}
}

// gRPC health checks accept SERVING alone, by any encoding of it.
func TestCheckGRPC(t *testing.T) {
	leaktest.Check(t)
	target := &grpcTarget{}
	s := httptest.NewUnstartedServer(target)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	good := message([]byte{1 << 3, 1}, "0")
	target.respond.Store(&good)
	changes := make(chan string, 1)
	newGroup(t, upstream.Options{Check: &upstream.Check{
		GRPC: true, GRPCService: "shop.v1.Cart", Interval: time.Millisecond, Fall: 1, Rise: 1,
		OnChange: func(_ string, healthy bool, err error) { changes <- fmt.Sprint(healthy, " ", err) },
	}}, upstream.Target{Addr: s.Listener.Addr().String()})
	reply := func(f func(http.ResponseWriter), want string) {
		t.Helper()
		target.respond.Store(&f)
		if got := wiretest.Await(t, changes, want); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	full := append([]byte{2<<3 | 2, 3, 'a', 'b', 'c', 3<<3 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 4<<3 | 5, 1, 2, 3, 4, 5 << 3, 7}, 1<<3, 2, 1<<3, 0x81, 0)
	for _, test := range []struct {
		respond func(http.ResponseWriter)
		want    string
	}{
		{message([]byte{1 << 3, 2}, "0"), "NOT_SERVING"},
		{message([]byte{1 << 3, 3}, "0"), "SERVICE_UNKNOWN"},
		{message(nil, "0"), "UNKNOWN"},
		{message([]byte{1 << 3, 9}, "0"), "serving status 9"},
		{message([]byte{1 << 3}, "0"), "the gRPC message is not a HealthCheckResponse"},
		{message([]byte{1<<3 | 7, 1}, "0"), "the gRPC message is not a HealthCheckResponse"},
		{message([]byte{2<<3 | 2, 100, 1}, "0"), "the gRPC message is not a HealthCheckResponse"},
		{message([]byte{2<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "0"), "the gRPC message is not a HealthCheckResponse"},
		{message([]byte{2<<3 | 1, 0}, "0"), "the gRPC message is not a HealthCheckResponse"},
		{message([]byte{1 << 3, 1}, ""), "a gRPC response without grpc-status"},
		{message([]byte{1 << 3, 1}, "14"), `gRPC status "14": ""`},
		{func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc+proto")
			w.Header().Set("Grpc-Status", "5")
			w.Header().Set("Grpc-Message", "unknown service")
		}, `gRPC status "5": "unknown service"`},
		{func(w http.ResponseWriter) { w.WriteHeader(503) }, "status 503"},
		{func(w http.ResponseWriter) { fmt.Fprint(w, "ok") }, `Content-Type "text/plain; charset=utf-8" is not gRPC's`},
		{func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write([]byte{1, 0, 0, 0, 2, 1 << 3, 1})
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}, "the gRPC message is compressed"},
		{func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write([]byte{0, 0, 0, 0, 9, 1 << 3, 1})
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}, "the response is not one gRPC message"},
		{func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write(bytes.Repeat([]byte{0}, 65<<10))
		}, "the response is longer than 65536 bytes"},
	} {
		reply(test.respond, "false "+test.want)
		reply(message(full, "0"), "true <nil>")
	}
	if got, want := *target.request.Load(), `POST /grpc.health.v1.Health/Check HTTP/2.0 application/grpc trailers "\x00\x00\x00\x00\x0e\n\fshop.v1.Cart"`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}
