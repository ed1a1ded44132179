package http1_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// What a socket has not taken in a moment may be written behind it.
func TestWriteWithin(t *testing.T) {
	leaktest.Check(t)
	for name, timeout := range map[string]time.Duration{"no WriteTimeout": 0, "WriteTimeout": time.Hour} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "target"))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			o := options(nil)
			o.WriteTimeout = timeout
			o.Dial = func(context.Context, http1.Addr) (net.Conn, error) { return net.Dial("unix", listener.Addr().String()) }
			c := get(t, http1.NewPool(o))
			far, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			sent := wiretest.Pattern(4 << 20) // more than any socket takes
			n := 0
			for moment := time.Millisecond; n == 0 && err == nil && moment < time.Minute; moment *= 2 { // a busy machine's may have passed before the write begins
				n, err = c.WriteWithin(sent, moment)
			}
			if n == 0 || n == len(sent) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			received := make(chan []byte)
			go func() {
				all, _ := io.ReadAll(far)
				received <- all
			}()
			if m, err := c.Write(sent[n:]); m != len(sent)-n || err != nil {
				t.Errorf("%d bytes, %v", m, err)
			}
			c.Close()
			wiretest.SameBytes(t, "received", <-received, sent)
		})
	}
}

// A write that is interrupted fails, and so does one of a connection that was interrupted before.
func TestWriteWithinIsInterrupted(t *testing.T) {
	leaktest.Check(t)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "target"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := options(nil)
	o.Dial = func(context.Context, http1.Addr) (net.Conn, error) { return net.Dial("unix", listener.Addr().String()) }
	c := get(t, http1.NewPool(o))
	defer c.Close()
	c.Interrupt()
	if _, err := c.WriteWithin([]byte("a"), time.Hour); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// Of what is written to a pipe, or over TLS, a part may be written that is not told: nothing is.
func TestWriteWithinOfAPipe(t *testing.T) {
	c := get(t, http1.NewPool(options(&targets{})))
	defer c.Close()
	if n, err := c.WriteWithin([]byte("a"), time.Hour); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
