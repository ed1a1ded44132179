package filtertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
)

// patience bounds every wait of a check.
const patience = 5 * time.Second

// run serves script with f around it, runs client on a connection to the server, and returns the
// failures of the two sides.
func run(f culvert.Filter, script func(*stage, http.ResponseWriter, *http.Request), client func(*client) error) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &stage{}
	server := &http.Server{
		Handler:  f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { script(s, w, r) })),
		ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), contextKey{}, "kept")
		},
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with Close
	}()
	err = dialAndRun(l.Addr().String(), client)
	server.Close()
	<-served
	return errors.Join(s.problem(), err)
}

type contextKey struct{}

func dialAndRun(address string, run func(*client) error) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	return run(&client{conn: conn.(*net.TCPConn), r: bufio.NewReader(conn)})
}

// stage collects the failures that a scripted handler reports.
type stage struct {
	mu       sync.Mutex
	problems []error
}

func (s *stage) failf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Errorf("in the handler: "+format, args...))
}

// check reports err, if it is not nil, as a failure of what.
func (s *stage) check(what string, err error) {
	if err != nil {
		s.failf("%s: %w", what, err)
	}
}

func (s *stage) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.problems...)
}

// await waits until done is closed, and reports whether it was closed in time.
func await(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// client is a raw HTTP/1.1 connection.
type client struct {
	conn *net.TCPConn
	r    *bufio.Reader
}

func (c *client) send(raw string) error {
	_, err := io.WriteString(c.conn, raw)
	return err
}

// roundTrip sends raw and reads the header of a response, which may be an interim one.
func (c *client) roundTrip(raw string) (*http.Response, error) {
	if err := c.send(raw); err != nil {
		return nil, err
	}
	return c.next()
}

// next reads the header of the next response.
func (c *client) next() (*http.Response, error) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, fmt.Errorf("reading a response: %w", err)
	}
	return resp, nil
}

// want reads as many bytes of r as text has, and compares them.
func want(r io.Reader, text string) error {
	got := make([]byte, len(text))
	n, err := io.ReadFull(r, got)
	if err != nil || string(got) != text {
		return fmt.Errorf("got %q and error %v, want %q", got[:n], err, text)
	}
	return nil
}

// wantBody reads a whole body and compares it.
func wantBody(resp *http.Response, text string) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != text {
		return fmt.Errorf("body of %d bytes %.80q and error %v, want %d bytes %.80q", len(body), body, err, len(text), text)
	}
	return nil
}

func wantStatus(resp *http.Response, status int) error {
	if resp.StatusCode != status {
		return fmt.Errorf("status %d, want %d", resp.StatusCode, status)
	}
	return nil
}

func wantField(h http.Header, name, value string) error {
	if got := h.Get(name); got != value {
		return fmt.Errorf("field %s is %q, want %q", name, got, value)
	}
	return nil
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
