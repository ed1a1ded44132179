package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load sends requests over connections for the duration, each as soon as the
// one before is answered, and returns how many were answered. An answer that is
// not the expected one is an error.
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

// paced sends requests at the work's rate, whatever the peer does, and returns the
// times that they took, in order. A time begins when the request was due: a peer
// that holds one up holds up those behind it, and that counts.
func paced(address string, w work, connections int, duration time.Duration) ([]time.Duration, error) {
	times := make([][]time.Duration, connections)
	interval := time.Duration(connections) * time.Second / time.Duration(w.rate)
	start := time.Now()
	err := each(connections, func(i int) error {
		c, err := newClient(address, w)
		if err != nil {
			return err
		}
		defer c.conn.Close()
		for due := start.Add(interval * time.Duration(i) / time.Duration(connections)); due.Before(start.Add(duration)); due = due.Add(interval) {
			time.Sleep(time.Until(due))
			if err := c.exchange(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(due))
		}
		return nil
	})
	all := slices.Concat(times...)
	slices.Sort(all)
	return all, err
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
	return &client{w, conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

func (c *client) exchange() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	return c.readAnswer()
}

// readAnswer reads one answer with as little work as can be: the processor is
// the peer's.
func (c *client) readAnswer() error {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("answer %q", line)
	}
	length := -1
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if length != c.answer {
		return fmt.Errorf("an answer of %d bytes", length)
	}
	_, err = c.r.Discard(length)
	return err
}
