package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A response that ends with its connection does not look whole where its handler panics or a write of it fails, nor over TLS:
// the connection is reset, and no close_notify announces its end (RFC 8446 section 6.1).
func TestCutResponseIsReset(t *testing.T) {
	for name, cut := range map[string]func(w http.ResponseWriter){
		"abort": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"failed write": func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
			if _, err := io.WriteString(w, strings.Repeat("more ", outSize)); err == nil {
				t.Error("the write has not failed")
			}
		},
		"failed end": func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
			_, _ = io.WriteString(w, "more")
		},
	} {
		for _, secure := range []bool{false, true} {
			for _, request := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"} {
				received := make(chan bool)
				p := dial(t, handler(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, "part")
					w.(http.Flusher).Flush()
					<-received
					cut(w)
				}), secure)
				p.Send(request)
				_ = p.Header()
				p.Receive("part")
				received <- true
				rest, err := io.ReadAll(p.R)
				if len(rest) > 0 || err == nil || !secure && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s, TLS: %v: %q, %v", name, secure, rest, err)
				}
			}
		}
	}
}

// So does one whose file the kernel moves, when the client has not read it in time.
func TestCutFileIsReset(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 64 << 20 // more than the sockets hold
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	copied, ended := make(chan error, 1), make(chan error, 1)
	p := dial(t, handler(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := io.Copy(w, f)
		ended <- r.Context().Err()
		copied <- err
	}), false)
	p.Send("GET / HTTP/1.0\r\n\r\n")
	if err := <-copied; err == nil {
		t.Error("the copy has not failed")
	}
	if err := <-ended; err == nil {
		t.Error("the context has not ended")
	}
	if n, err := io.Copy(io.Discard, p.R); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// recorded keeps what a connection receives.
type recorded struct {
	net.Conn
	all []byte
}

func (c *recorded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.all = append(c.all, p[:n]...)
	return n, err
}

// tinyRecords returns how many records of application data hold a few bytes, such as the line of a chunk.
func (c *recorded) tinyRecords() (n int) {
	for b := c.all; len(b) >= 5; {
		length := int(b[3])<<8 | int(b[4])
		if b[0] == 23 && length < 40 {
			n++
		}
		b = b[min(5+length, len(b)):]
	}
	return n
}

// Over TLS the line and the end of a chunk are no records of their own.
func TestChunksOverTLS(t *testing.T) {
	const chunk, chunks = 20_000, 10
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := handler(func(w http.ResponseWriter, _ *http.Request) {
		for range chunks {
			_, _ = w.Write(make([]byte, chunk))
		}
	})
	s.TLSConfig = &tls.Config{Certificates: testCertificate()}
	startOn(t, s, func() error { return s.ServeTLS(l, "", "") })
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	all := &recorded{Conn: raw}
	p := wiretest.NewPeer(t, tls.Client(all, &tls.Config{InsecureSkipVerify: true}))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := p.Response("GET"); len(body) != chunk*chunks {
		t.Errorf("%d bytes", len(body))
	}
	if n := all.tinyRecords(); n >= chunks { // the last chunk, and ends of large records
		t.Errorf("%d tiny records", n)
	}
}
