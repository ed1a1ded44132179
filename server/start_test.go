package server

import (
	"bytes"
	"crypto/tls"
	"flag"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestMain looks for what the tests leave behind. A fuzzer and benchmarks leave goroutines of their own.
func TestMain(m *testing.M) {
	drainWithin, lingerWithin = 20*time.Second, 20*time.Second
	flag.Parse()
	for _, name := range []string{"test.bench", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			os.Exit(m.Run())
		}
	}
	os.Exit(leaktest.Run(m))
}

// start serves with s until the test ends.
func start(t testing.TB, s *Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startOn(t, s, func() error { return s.Serve(l) })
	return l.Addr().String()
}

func startOn(t testing.TB, s *Server, serve func() error) {
	t.Helper()
	if s.ErrorLog == nil {
		s.ErrorLog = log.New(new(lines), "", 0)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve() }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != http.ErrServerClosed {
			t.Error(err)
		}
		if drained := s.awaitDrained(); drained != nil {
			<-drained
		}
	})
}

// handler serves f.
func handler(f func(w http.ResponseWriter, r *http.Request)) *Server {
	return &Server{Handler: http.HandlerFunc(f)}
}

// lines is the output of a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// dial connects to a server that serves with s until the test ends, over TLS if secure.
func dial(t testing.TB, s *Server, secure bool) *wiretest.Peer {
	t.Helper()
	if !secure {
		return wiretest.Dial(t, start(t, s))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.TLSConfig = &tls.Config{Certificates: testCertificate()}
	startOn(t, s, func() error { return s.ServeTLS(l, "", "") })
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wiretest.NewPeer(t, conn)
}

// testCertificate is httptest's.
var testCertificate = sync.OnceValue(func() []tls.Certificate {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates
})

func newLogger(l *lines) *log.Logger { return log.New(l, "", 0) }

// rawClient is a client that allocates nothing.
type rawClient struct {
	conn net.Conn
	buf  [4 << 10]byte
}

func dialRaw(t *testing.T, addr string) *rawClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawClient{conn: conn}
}

var rawGet = []byte("GET /path?a=b HTTP/1.1\r\nHost: a\r\nUser-Agent: b\r\nAccept: */*\r\n\r\n")

// get exchanges a request for a response that fits into one packet.
func (c *rawClient) get(t *testing.T) {
	if _, err := c.conn.Write(rawGet); err != nil {
		t.Fatal(err)
	}
	for n := 0; !bytes.HasSuffix(c.buf[:n], okBody); {
		m, err := c.conn.Read(c.buf[n:])
		if n += m; err != nil {
			t.Fatal(err)
		}
	}
}
