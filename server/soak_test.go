package server_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/server"
)

var soakFor = flag.Duration("soak", 0, "how long TestSoak runs; 0: a second, in which memory is not compared")

const (
	soakWorkers = 16
	soakIdle    = 2000 // connections that wait for their next request
	soakRounds  = 60
	soakGrowth  = 1.05 // of memory, at most
)

// Mixed traffic leaves nothing behind: connections of HTTP/1 and HTTP/2 with and without TLS, uploads, clients that leave
// anywhere, aborted handlers, connections that are hijacked, and idle ones. Between rounds of traffic, when only the idle
// connections are left, memory is as it was after the first third of the rounds, which warm the process up.
func TestSoak(t *testing.T) {
	leaktest.Check(t)
	s := newSoak(t)
	rounds, round := 2, time.Second/2
	if *soakFor > 0 {
		rounds, round = soakRounds, *soakFor/soakRounds
	}
	var heaps, resident []float64
	for i := range rounds {
		s.run(round)
		heap, rss := memoryNow()
		heaps, resident = append(heaps, heap), append(resident, rss)
		t.Logf("round %d: heap in use %.2f MiB, resident %.1f MiB, %d goroutines, exchanges: %s", i, heap, rss, runtime.NumGoroutine(), s)
	}
	if *soakFor > 0 {
		flat(t, "heap in use", heaps)
		flat(t, "resident memory", resident)
	}
}

// flat compares the medians of the second and of the last third.
func flat(t *testing.T, what string, values []float64) {
	third := len(values) / 3
	before, after := median(values[third:2*third]), median(values[2*third:])
	t.Logf("%s: %.2f MiB in the second third, %.2f in the last one: %+.1f %%", what, before, after, 100*(after/before-1))
	if after > before*soakGrowth {
		t.Errorf("%s grows", what)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// memoryNow returns the heap in use and the resident memory, in MiB, without garbage.
func memoryNow() (heap, resident float64) {
	for range 3 { // what a pool holds is freed by the second one
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, _ := os.ReadFile("/proc/self/status") // elsewhere than on Linux the resident memory is 0
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			resident = kib / 1024
		}
	}
	return float64(m.HeapInuse) / (1 << 20), resident
}

// soak is the traffic.
type soak struct {
	t             *testing.T
	plain, secure string // addresses
	http2         *http.Client
	kinds         []soakKind
	idle          []*soakConn
}

// soakKind is a kind of traffic.
type soakKind struct {
	name string
	run  func(rnd *rand.Rand) error
	n    *atomic.Int64
}

func newSoak(t *testing.T) *soak {
	srv := &server.Server{Handler: http.HandlerFunc(serveSoak), TLSConfig: &tls.Config{Certificates: testCertificate()},
		ErrorLog: wiretest.Quiet(), ReadHeaderTimeout: time.Minute}
	s := &soak{t: t, plain: soakListener(t, srv.Serve), secure: soakListener(t, func(l net.Listener) error { return srv.ServeTLS(l, "", "") })}
	t.Cleanup(func() { srv.Close() })
	var p http.Protocols
	p.SetHTTP2(true)
	transport := &http.Transport{Protocols: &p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	s.http2 = &http.Client{Transport: transport}
	idle := soakIdle
	if *soakFor == 0 {
		idle = wiretest.Size(soakIdle, soakIdle/10)
	}
	for range idle {
		s.idle = append(s.idle, s.dialIdle())
	}
	t.Cleanup(func() {
		for _, c := range s.idle {
			c.Close()
		}
	})
	for _, k := range []soakKind{{name: "kept", run: s.kept}, {name: "HTTP/2", run: s.streams}, {name: "left", run: s.leave},
		{name: "taken", run: s.take}, {name: "aborted", run: s.abort}} {
		k.n = new(atomic.Int64)
		s.kinds = append(s.kinds, k)
	}
	return s
}

// soakListener serves without probes, and dial dials without them: where both ends send those at once, Linux 6.18 was seen
// to drop the responses to them for their timestamps (PAWS), and to end half of the connections that were idle for 150 s,
// those of a program without HTTP as well.
func soakListener(t *testing.T, serve func(net.Listener) error) (addr string) {
	l, err := (&net.ListenConfig{KeepAlive: -1}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(l) }()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String()
}

// serveSoak responds with what the request's path names.
func serveSoak(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		_, _ = io.Copy(w, r.Body)
	case "/large":
		_, _ = w.Write(wiretest.Pattern(200_000))
	case "/wait":
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	case "/abort":
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "/take":
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.CopyN(conn, rw, 5)
	default:
		_, _ = io.WriteString(w, "hello")
	}
}

// run has the workers make traffic for d.
func (s *soak) run(d time.Duration) {
	var workers sync.WaitGroup
	until := time.Now().Add(d)
	for range soakWorkers {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for time.Now().Before(until) {
				k := s.kinds[rnd.IntN(len(s.kinds))]
				if err := k.run(rnd); err != nil {
					s.t.Errorf("%s: %v", k.name, err)
					return
				}
				k.n.Add(1)
			}
		})
	}
	workers.Wait()
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range len(s.idle) / 10 { // some are used, some are replaced
		i := rnd.IntN(len(s.idle))
		if rnd.IntN(4) == 0 {
			s.idle[i].Close()
			s.idle[i] = s.dialIdle()
		}
		if err := s.idle[i].get("/"); err != nil {
			s.t.Errorf("idle: %v", err)
		}
	}
	s.http2.CloseIdleConnections()
}

func (s *soak) String() string {
	var b strings.Builder
	for _, k := range s.kinds {
		fmt.Fprintf(&b, "%s %d; ", k.name, k.n.Load())
	}
	return b.String()
}

// soakConn is a client's connection.
type soakConn struct {
	net.Conn
	raw *net.TCPConn
}

func (s *soak) dial(secure bool) (*soakConn, error) {
	addr := s.plain
	if secure {
		addr = s.secure
	}
	raw, err := (&net.Dialer{KeepAlive: -1}).Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &soakConn{Conn: raw, raw: raw.(*net.TCPConn)}
	if secure {
		c.Conn = tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	}
	return c, nil
}

// dialIdle returns a connection that waits for its second request.
func (s *soak) dialIdle() *soakConn {
	c, err := s.dial(false)
	if err == nil {
		err = c.get("/")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// exchange sends a request and reads its response.
func (c *soakConn) exchange(request string) (body []byte, err error) {
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil) // nothing follows the response
	if err != nil {
		return nil, err
	}
	return io.ReadAll(resp.Body)
}

func (c *soakConn) get(path string) error {
	_, err := c.exchange("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
	return err
}

// kept makes exchanges over one connection.
func (s *soak) kept(rnd *rand.Rand) error {
	c, err := s.dial(rnd.IntN(2) == 0)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + rnd.IntN(20) {
		content := wiretest.Pattern(rnd.IntN(50_000))
		var got []byte
		switch rnd.IntN(5) {
		case 0:
			content = wiretest.Pattern(200_000)
			got, err = c.exchange("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
		case 1:
			got, err = c.exchange(fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(content), content))
		case 2:
			got, err = c.exchange(fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nA: b\r\n\r\n",
				len(content)+1, append(content, 'x')))
			content = append(content, 'x')
		case 3:
			content = nil
			got, err = c.exchange("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		default:
			content = []byte("hello")
			got, err = c.exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(got, content) {
			return fmt.Errorf("%d bytes, want %d", len(got), len(content))
		}
	}
	return nil
}

// streams makes a request over HTTP/2.
func (s *soak) streams(rnd *rand.Rand) error {
	content := wiretest.Pattern(rnd.IntN(50_000))
	resp, err := s.http2.Post("https://"+s.secure+"/echo", "", bytes.NewReader(content))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if rnd.IntN(4) == 0 {
		return nil // the stream is reset
	}
	got, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(got, content) {
		err = fmt.Errorf("%d bytes, want %d", len(got), len(content))
	}
	return err
}

// leave leaves within a request or a response.
func (s *soak) leave(rnd *rand.Rand) error {
	c, err := s.dial(rnd.IntN(2) == 0)
	if err != nil {
		return err
	}
	defer c.Close()
	request := []string{"GET /large HTTP/1.1\r\nHost: a\r\n\r\n", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello",
		"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", "malformed\r\n\r\n"}[rnd.IntN(4)]
	_, _ = io.WriteString(c, request[:rnd.IntN(len(request)+1)])
	if rnd.IntN(2) == 0 {
		time.Sleep(time.Millisecond)
	}
	if rnd.IntN(2) == 0 {
		_ = c.raw.SetLinger(0)
		return c.raw.Close()
	}
	return nil
}

// take has the connection hijacked.
func (s *soak) take(rnd *rand.Rand) error {
	c, err := s.dial(rnd.IntN(2) == 0)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET /take HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
	got, err := io.ReadAll(c)
	if err == nil && !bytes.HasSuffix(got, []byte("\r\n\r\nhello")) {
		err = fmt.Errorf("received %q", got)
	}
	return err
}

// abort has the handler panic.
func (s *soak) abort(rnd *rand.Rand) error {
	c, err := s.dial(rnd.IntN(2) == 0)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.get("/abort"); err == nil {
		return fmt.Errorf("an aborted response is whole")
	}
	return nil
}
