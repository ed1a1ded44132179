package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
)

// early is about responses that come before their request has ended: the exchange has ended when the
// client ends its upload, resets it, or sends something else in its place.
var early = scenario{
	name:    "early",
	promise: "a response before the end of its request ends the exchange, and the next one is the next request's",
	clients: 48, few: 144,
	start: func(r *run) func(*client) {
		e := &earlyLoad{addr: r.target(earlyTarget)}
		decompress := must(filters.Decompress(filters.DecompressOptions{Requests: true}))
		e.gateways = append(e.gateways, r.gateways(setup{name: "streaming", targets: addresses(e.addr)})...)
		e.decoding = r.gateways(setup{name: "Decompress", targets: addresses(e.addr), filters: []culvert.Filter{decompress}})
		e.gateways = append(e.gateways, e.decoding...)
		e.whole = r.gateways(setup{name: "RequestBuffer", targets: addresses(e.addr), proxy: proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 4 << 10, Disk: 1 << 20}}})
		return e.converse
	},
}

type earlyLoad struct {
	addr     string
	gateways []*gateway // that stream
	decoding []*gateway // of them
	whole    []*gateway // that hold the body first
	ids      atomic.Int64
}

// earlyTarget responds somewhere within the request's body.
func earlyTarget(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		id := q.Header.Get("X-Id")
		switch {
		case q.URL.Path == "/next":
			p.send("HTTP/1.1 200 OK\r\nX-Id: %s\r\nContent-Length: %d\r\n\r\n%s", id, len(id), id)
			continue
		case q.URL.Path != "/early":
			p.run.broke("no part of a body becomes a request", "%s %s reached the target", q.Method, q.URL.Path)
			return
		}
		if p.IntN(2) == 0 {
			p.pause(2 * time.Millisecond)
		}
		if n, err := strconv.ParseInt(q.Header.Get("X-Read"), 10, 64); err == nil {
			_, _ = io.CopyN(io.Discard, q.Body, n)
		}
		cut, connection := q.Header.Get("X-Cut") != "", "keep-alive"
		if cut {
			connection = "close" // or the reset would meet a request that knows nothing of it
		}
		p.send("HTTP/1.1 401 Unauthorized\r\nX-Id: %s\r\nConnection: %s\r\n", id, connection)
		if p.IntN(2) == 0 {
			p.send("Content-Length: %d\r\n\r\n%s", len(id), id)
		} else {
			p.send("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(id), id)
		}
		if cut {
			p.pause(60 * time.Millisecond)
			p.reset()
			return
		}
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		}
	}
}

func (e *earlyLoad) id() string { return fmt.Sprint("id-", e.ids.Add(1)) }

// upload is a request, and its body in two pieces.
type upload struct {
	request
	id         string
	begin, end string
}

func (e *earlyLoad) upload(c *client, decoding, http2 bool) upload {
	u := upload{id: e.id(), request: request{method: http.MethodPost, path: "/early", chunked: c.odds(2)}}
	u.header = [][2]string{{"X-Id", u.id}}
	body := strings.Repeat("x", 1+c.IntN(12000))
	if !u.chunked && !http2 {
		body += strings.Repeat("y", 40000) // a shorter one is sent when it has arrived as a whole
	}
	at := c.IntN(len(body))
	switch {
	case decoding && !c.odds(4):
		coding := pick(c.Rand, []string{"gzip", "zstd"})
		body = encoded(coding, c.Rand, len(body))
		u.header = append(u.header, [2]string{"Content-Encoding", coding})
		at = c.IntN(len(body))
	case c.odds(2):
		u.header = append(u.header, [2]string{"X-Read", fmt.Sprint(c.IntN(at + 1))})
	}
	if c.odds(8) {
		u.header = append(u.header, [2]string{"X-Cut", "1"})
	}
	u.begin, u.end, u.body = body[:at], body[at:], body
	return u
}

// encoded is a body that does not become much shorter.
func encoded(coding string, rnd *rand.Rand, n int) string {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if coding == "zstd" {
		w = must(zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1)))
	}
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	_, _ = w.Write(text)
	_ = w.Close()
	return b.String()
}

// lag waits between the pieces of a body: often about as long as the target takes for its response, or
// as the proxy may wait for an upload to end behind that.
func (c *client) lag() {
	switch c.IntN(3) {
	case 0:
		c.pause(60 * time.Millisecond)
	case 1:
		c.pause(2 * time.Millisecond)
	default:
		c.fault()
		time.Sleep(46*time.Millisecond + upTo(c.Rand, 8*time.Millisecond))
	}
}

// finish ends a body, or in one of four cases resets its stream, and reports whether it has ended it.
func (c *client) finish(st *stream, end string) bool {
	if c.odds(4) {
		c.fault()
		_ = st.cancel()
		return false
	}
	_ = st.send(end, true)
	return true
}

func (e *earlyLoad) converse(c *client) {
	g, wait := pick(c.Rand, e.gateways), c.odds(2)
	if c.odds(8) {
		g, wait = pick(c.Rand, e.whole), false
	}
	decoding := g == e.decoding[0] || g == e.decoding[1]
	p := pick(c.Rand, protocols)
	if p.http2() {
		e.streams(c, g, p, decoding, wait)
		return
	}
	x := c.dial1(g, p)
	if x == nil {
		return
	}
	defer x.Close()
	e.kept(c, g, x, e.upload(c, decoding, false), wait)
}

const ownResponse = "a request gets its own response"

// kept runs an upload and the request behind it on a connection of HTTP/1.1. wait has the rest of
// the body sent after the response.
func (e *earlyLoad) kept(c *client, g *gateway, x *conn1, u upload, wait bool) {
	c.exchanges.Add(1)
	begin, end := u.begin, u.end
	if u.chunked {
		if begin != "" {
			begin = fmt.Sprintf("%x\r\n%s\r\n", len(begin), begin)
		}
		end = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(end), end)
	}
	_, _ = io.WriteString(x, u.headerSection()+begin)
	if !wait {
		c.lag()
		_, _ = io.WriteString(x, end)
	}
	resp, err := x.receive(u.method)
	if err != nil && !wait {
		return // the end of the body met a connection that was closed, and its reset was quicker than the response
	}
	if !e.own(c, g, u, resp, err) {
		return
	}
	if wait {
		c.lag()
		switch c.IntN(4) {
		case 0:
			c.fault()
			x.reset()
			return
		case 1:
			c.fault()
			smuggled := "POST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
			_, _ = io.WriteString(x, smuggled)
		default:
			_, _ = io.WriteString(x, end)
		}
	}
	next := request{method: http.MethodGet, path: "/next", header: [][2]string{{"X-Id", e.id()}}}
	if resp, err = x.exchange(next); err == nil && resp.header.Get("X-Id") != next.header[0][1] {
		c.broke(ownResponse, "%s: behind an upload: status %d of %q to %q", g.name, resp.status, resp.header.Get("X-Id"), next.header[0][1])
	}
}

// own reports whether the response is the upload's.
func (e *earlyLoad) own(c *client, g *gateway, u upload, resp response, err error) bool {
	cut := len(u.header) > 1 && u.header[len(u.header)-1][0] == "X-Cut"
	switch {
	case cut && (err != nil || resp.status == http.StatusBadGateway):
		return false // the target's reset may come before its response
	case err != nil:
		c.broke("an early response comes as a whole", "%s: %v", g.name, err)
	case resp.status != http.StatusUnauthorized || resp.header.Get("X-Id") != u.id || resp.body != u.id:
		c.broke(ownResponse, "%s: status %d of %q with %q to %q", g.name, resp.status, resp.header.Get("X-Id"), resp.body, u.id)
	default:
		return true
	}
	return false
}

// streams runs uploads beside one another on a connection of HTTP/2, and a request behind them.
func (e *earlyLoad) streams(c *client, g *gateway, p protocol, decoding, wait bool) {
	s := c.session(g, p, 1<<20)
	if s == nil {
		return
	}
	defer s.Close()
	type running struct {
		upload
		*stream
	}
	var all []running
	for range 1 + c.IntN(5) {
		c.exchanges.Add(1)
		u := e.upload(c, decoding, true)
		st, err := s.begin(u.request, u.begin, false)
		if err != nil {
			c.broke("an early response leaves its connection as it is", "%s, %v: %v", g.name, p, err)
			return
		}
		all = append(all, running{u, st})
	}
	if !wait {
		c.lag()
	}
	for _, x := range all {
		if !wait && !c.finish(x.stream, x.upload.end) {
			continue
		}
		resp, err := x.receive()
		if e.own(c, g, x.upload, resp, err) && wait {
			c.lag()
			c.finish(x.stream, x.upload.end)
		}
	}
	next := request{method: http.MethodGet, path: "/next", header: [][2]string{{"X-Id", e.id()}}}
	if resp, ok := c.good(g, p, s, next, http.StatusOK); ok && resp.header.Get("X-Id") != next.header[0][1] {
		c.broke(ownResponse, "%s, %v: %q to %q", g.name, p, resp.header.Get("X-Id"), next.header[0][1])
	}
}
