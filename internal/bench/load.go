package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const request = "GET /1k HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\n\r\n"

// load sends requests over connections for the duration, each as soon as the
// one before is answered, and returns how many were answered. An answer that is
// not the expected one is an error.
func load(address string, connections int, duration time.Duration) (int64, error) {
	var requests atomic.Int64
	var loading sync.WaitGroup
	errs := make([]error, connections)
	end := time.Now().Add(duration)
	for i := range connections {
		loading.Go(func() { errs[i] = loadOne(address, end, &requests) })
	}
	loading.Wait()
	return requests.Load(), errors.Join(errs...)
}

func loadOne(address string, end time.Time, requests *atomic.Int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
		if err := readAnswer(r); err != nil {
			return err
		}
		requests.Add(1)
		if !time.Now().Before(end) {
			return nil
		}
	}
}

// readAnswer reads one answer with as little work as can be: the processor is
// the peer's.
func readAnswer(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("answer %q", line)
	}
	length := -1
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if length != contentSize {
		return fmt.Errorf("an answer of %d bytes", length)
	}
	_, err = r.Discard(length)
	return err
}
