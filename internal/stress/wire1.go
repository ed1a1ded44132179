package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// conn1 is a connection of HTTP/1.1.
type conn1 struct {
	net.Conn
	in *bufio.Reader
}

func (c *client) dial1(g *gateway, p protocol) *conn1 {
	conn := c.dial(g, p)
	if conn == nil {
		return nil
	}
	return &conn1{conn, bufio.NewReader(conn)}
}

func (x *conn1) reset() { reset(x.Conn) }

// headerSection is the request up to its body.
func (q *request) headerSection() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: gateway.test\r\n", q.method, q.path)
	for _, f := range q.header {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	switch {
	case q.inChunks():
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case q.body != "" || q.method == http.MethodPost:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(q.body))
	}
	b.WriteString("\r\n")
	return b.String()
}

func (q *request) inChunks() bool { return q.chunked || len(q.trailer) > 0 }

// content is the body as it is sent.
func (q *request) content() string {
	if !q.inChunks() {
		return q.body
	}
	var b strings.Builder
	if q.body != "" {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(q.body), q.body)
	}
	b.WriteString("0\r\n")
	for _, f := range q.trailer {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	b.WriteString("\r\n")
	return b.String()
}

func (x *conn1) exchange(q request) (response, error) {
	if _, err := io.WriteString(x, q.headerSection()+q.content()); err != nil {
		return response{}, err
	}
	return x.receive(q.method)
}

// receive reads a response to a request with the method, and those interim ones before it.
func (x *conn1) receive(method string) (resp response, err error) {
	for {
		got, err := http.ReadResponse(x.in, &http.Request{Method: method})
		if err != nil {
			return resp, err
		}
		part := section{got.StatusCode, got.Header}
		if got.StatusCode < 200 {
			resp.interim = append(resp.interim, part)
			continue
		}
		resp.section, resp.closes = part, got.Close
		body, err := io.ReadAll(got.Body)
		resp.body, resp.trailer = string(body), got.Trailer
		return resp, err
	}
}
