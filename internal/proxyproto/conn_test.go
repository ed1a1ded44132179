package proxyproto_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/proxyproto"
)

// A header is removed, however it is received in pieces, and what follows is not.
func TestConn(t *testing.T) {
	long := signature + "\x21\x11\x01\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x07\x00\x08" + strings.Repeat("\x04\x00\x00\x00", 64)
	for _, head := range []string{"PROXY TCP4 192.0.2.1 192.0.2.2 7 8\r\n", long} {
		for _, size := range []int{1, 7, len(head), len(head) + 2, 1 << 10} {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				for rest := head + "GET /"; rest != ""; {
					n := min(size, len(rest))
					_, _ = io.WriteString(far, rest[:n])
					rest = rest[n:]
				}
			}()
			c := proxyproto.NewConn(near, time.Minute)
			content, err := io.ReadAll(c)
			h, _ := c.Header()
			if string(content) != "GET /" || err != nil || h.Client != header("192.0.2.1:7", "").Client || h.Server != header("", "192.0.2.2:8").Server {
				t.Errorf("in pieces of %d: %q, %v, header %v", size, content, err, h)
			}
			near.Close()
		}
	}
}

func TestConnWithoutHeader(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		_, _ = io.WriteString(far, "GET / HTTP/1.1\r\n\r\n")
	}()
	if n, err := proxyproto.NewConn(near, 0).Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// The header has its own time, and the deadline that is set counts before and behind it.
func TestConnDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			set, send, want time.Duration
		}{
			"header":          {0, time.Hour, time.Second},
			"earlier":         {time.Second / 2, time.Hour, time.Second / 2},
			"later, header":   {time.Minute, time.Hour, time.Second},
			"behind a header": {time.Minute, 0, time.Minute},
		} {
			near, far := net.Pipe()
			start, sent := time.Now(), make(chan struct{})
			go func() {
				defer close(sent)
				time.Sleep(test.send)
				_, _ = io.WriteString(far, "PROXY UNKNOWN\r\n")
			}()
			c := proxyproto.NewConn(near, time.Second)
			if test.set > 0 {
				_ = c.SetReadDeadline(start.Add(test.set))
			}
			_, err := c.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != test.want {
				t.Errorf("%s: %v after %v, want a timeout after %v", name, err, time.Since(start), test.want)
			}
			near.Close()
			far.Close()
			<-sent
		}
	})
}
