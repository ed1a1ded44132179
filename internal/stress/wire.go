package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// protocol is what a client speaks.
type protocol int

const (
	http1 protocol = iota
	http1TLS
	h2c
	h2
)

var protocols = []protocol{http1, http1TLS, h2c, h2}

func (p protocol) String() string {
	return [...]string{"HTTP/1.1", "HTTP/1.1 over TLS", "h2c", "h2"}[p]
}

func (p protocol) http2() bool { return p >= h2c }

// request is what a client sends.
type request struct {
	method, path string
	header       [][2]string
	body         string
	chunked      bool // HTTP/1.1: in chunks, without a length
	trailer      [][2]string
}

// response is what comes back.
type response struct {
	interim []section
	section
	body    string
	trailer http.Header
	closes  bool // the connection ends with it
}

// section is a header section.
type section struct {
	status int
	header http.Header
}

// wire is a client's connection, of HTTP/1.1 or of HTTP/2.
type wire interface {
	// exchange sends a request and reads the whole response.
	exchange(request) (response, error)
	// reset closes the connection so that the gateway sees a reset, where it is a plain one.
	reset()
	Close() error
}

// connect opens a connection; nil where the gateway refuses, which is a broken promise.
func (c *client) connect(g *gateway, p protocol) wire {
	if p.http2() {
		if s := c.session(g, p, 1<<20); s != nil {
			return s
		}
		return nil
	}
	if x := c.dial1(g, p); x != nil {
		return x
	}
	return nil
}

// dial connects to a gateway; nil where that fails.
func (c *client) dial(g *gateway, p protocol) net.Conn {
	addr := g.plain
	if p == h2 || p == http1TLS {
		addr = g.secure
	}
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		c.broke("a gateway accepts connections", "%s, %v: %v", g.name, p, err)
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	switch p {
	case h2:
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	case http1TLS:
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	return conn
}

// good sends a request that nothing is wrong with and counts it. ok is false where its response
// does not come as a whole, or does not have the status: a broken promise.
func (c *client) good(g *gateway, p protocol, w wire, q request, status int) (resp response, ok bool) {
	c.exchanges.Add(1)
	resp, err := w.exchange(q)
	if err != nil || resp.status != status {
		c.broke(fmt.Sprintf("%s %s has the status %d", q.method, q.path, status), "%s, %v: status %d, error %v", g.name, p, resp.status, err)
		return resp, false
	}
	return resp, true
}
