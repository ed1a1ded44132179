package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load sends requests over connections for the duration, each as soon as the response to the
// previous one was received, and returns the number of responses. An unexpected response is
// an error.
func load(address string, w work, connections int, duration time.Duration) (int64, error) {
	var requests atomic.Int64
	end := time.Now().Add(duration)
	err := each(connections, func(int) error {
		c, err := newClient(address, w)
		if err != nil {
			return err
		}
		defer c.conn.Close()
		for {
			if err := c.exchange(); err != nil {
				return err
			}
			requests.Add(1)
			if !time.Now().Before(end) {
				return nil
			}
		}
	})
	return requests.Load(), err
}

// paced sends requests at the work's rate and returns the times that they took, in order.
func paced(address string, w work, connections int, duration time.Duration) ([]time.Duration, error) {
	return atRate{w.rate, connections, duration}.run(func() (func() error, func() error, error) {
		c, err := newClient(address, w)
		if err != nil {
			return nil, nil, err
		}
		return c.exchange, c.conn.Close, nil
	})
}

// each runs f for each connection at the same time.
func each(connections int, f func(i int) error) error {
	var running sync.WaitGroup
	errs := make([]error, connections)
	for i := range connections {
		running.Go(func() { errs[i] = f(i) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// client is one connection.
type client struct {
	work
	conn net.Conn
	r    *bufio.Reader
}

func newClient(address string, w work) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	if w.secure {
		conn = tls.Client(conn, anyServer())
	}
	return &client{w, conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

func (c *client) exchange() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	return c.readResponse()
}

// readResponse reads one response with as little work as possible: the processor is the
// peer's.
func (c *client) readResponse() error {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("response %q", line)
	}
	length, chunked := -1, false
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		} else if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			chunked = true
		}
	}
	if c.length == anyLength && chunked {
		return c.readChunks()
	}
	if c.length == anyLength && length > 0 {
		_, err = c.r.Discard(length)
		return err
	}
	if length != c.length {
		return fmt.Errorf("a response of %d bytes", length)
	}
	_, err = c.r.Discard(length)
	return err
}

// readChunks reads a body in chunks and no trailer.
func (c *client) readChunks() error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		if _, err := c.r.Discard(int(n) + len("\r\n")); err != nil || n == 0 {
			return err
		}
	}
}
