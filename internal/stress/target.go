package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// peer is a target's end of a connection.
type peer struct {
	net.Conn
	*rand.Rand
	run *run
	in  *bufio.Reader
}

// target starts a target that runs script for each connection, which is closed behind it.
func (r *run) target(script func(*peer)) (addr string) {
	l := listen()
	var scripts sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	scripts.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			scripts.Go(func() {
				script(&peer{Conn: conn, Rand: r.random(), run: r, in: bufio.NewReader(conn)})
				conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	r.atEnd(func() {
		l.Close()
		mu.Lock()
		for conn := range open {
			conn.Close()
		}
		mu.Unlock()
		scripts.Wait()
	})
	return l.Addr().String()
}

// request reads a request; nil behind the last one. One that is malformed is a broken promise.
func (p *peer) request() *http.Request {
	if _, err := p.in.Peek(1); err != nil {
		return nil
	}
	req, err := http.ReadRequest(p.in)
	if err != nil {
		if _, ok := err.(net.Error); !ok && err.Error() != "unexpected EOF" {
			p.run.broke("targets get well-formed requests", "%v", err)
		}
		return nil
	}
	return req
}

// send writes a piece of a response. That the gateway has gone shows when the next request is read.
func (p *peer) send(format string, args ...any) { _, _ = fmt.Fprintf(p, format, args...) }

// pause waits for a random time up to d.
func (p *peer) pause(d time.Duration) {
	p.run.fault()
	pause(p.Rand, d)
}

// reset closes the connection so that the gateway sees a reset.
func (p *peer) reset() { p.run.fault(); reset(p.Conn) }

func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
