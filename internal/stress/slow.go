package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

const (
	slowTimeout = 2 * time.Second
	slowest     = 10 * slowTimeout // what an exchange may take on a machine that is busy
)

// slow is about clients that stop where an exchange's time is bounded.
var slow = scenario{
	name:    "slow",
	promise: "a client that stops takes no target out, and its exchange ends in its time",
	clients: 24, few: 24,
	start: func(r *run) func(*client) {
		whole, header := r.timedGateways()
		return func(c *client) {
			c.slowly(whole, func(g *gateway) { c.download(g, false) })
			c.slowly(slices.Concat(whole, header), c.stalledUpload)
		}
	},
}

// reader is about clients that read on, and take longer than the exchange may.
var reader = scenario{
	name:    "reader",
	promise: "a slow reader takes no target out, and its exchange ends in its time",
	clients: 24, few: 24,
	start: func(r *run) func(*client) {
		whole, _ := r.timedGateways()
		return func(c *client) {
			c.slowly(whole, func(g *gateway) { c.download(g, true) })
		}
	},
}

// timedGateways are those that bound the whole exchange, and those that bound the time to the header.
func (r *run) timedGateways() (whole, header []*gateway) {
	targets := []upstream.Target{{Addr: r.target(generous), MaxFails: 1}, {Addr: r.target(generous), MaxFails: 1}}
	blame := r.blame(r.pulse())
	whole = r.gateways(setup{name: "Options.Timeout", targets: targets, around: r.timed, proxy: proxy.Options{Timeout: slowTimeout, OnError: blame}})
	timeout := must(filters.Timeout(slowTimeout))
	header = r.gateways(setup{name: "filters.Timeout", targets: targets, around: r.timed, filters: []culvert.Filter{timeout}, proxy: proxy.Options{OnError: blame}})
	return whole, header
}

// blame finds failures that count against a target which waited for its client: those of uploads, which have no end,
// and of downloads behind their header. On a busy machine a target may be late with that, and with the rest where the
// machine has stopped them all.
func (r *run) blame(p *pulse) func(*http.Request, *culvert.Error) {
	return func(q *http.Request, err *culvert.Error) {
		if err.TargetSide() && err.Kind != culvert.NoTarget && (err.HeaderSent || q.Method == http.MethodPost) && !p.stopped(2*slowTimeout) {
			r.broke("a target is not blamed for its client", "%s %s of %s: %v", q.Method, q.URL, q.Proto, err)
		}
	}
}

// generous responds at once: to an upload when it has ended, to a GET with more than sockets hold.
func generous(p *peer) {
	piece := strings.Repeat("x", 64<<10)
	for {
		q := p.request()
		if q == nil {
			return
		}
		if n, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		} else if q.Method == http.MethodPost {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Got: %d\r\n\r\n", n)
			continue
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 512*len(piece))
		for range 512 {
			if _, err := io.WriteString(p, piece); err != nil {
				return
			}
		}
	}
}

// timed measures each exchange.
func (r *run) timed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		late := time.AfterFunc(slowest, func() {
			r.broke(fmt.Sprintf("an exchange of at most %v ends within %v", slowTimeout, slowest), "%s %s of %s did not", q.Method, q.URL, q.Proto)
		})
		defer late.Stop()
		next.ServeHTTP(w, q)
	})
}

// slowly runs an exchange with one of the gateways.
func (c *client) slowly(gateways []*gateway, exchange func(*gateway)) {
	c.exchanges.Add(1)
	c.fault()
	g := pick(c.Rand, gateways)
	exchange(g)
}

// stalledUpload sends the beginning of a body, and no more until the response is there.
func (c *client) stalledUpload(g *gateway) {
	p := pick(c.Rand, protocols)
	q := request{method: http.MethodPost, path: "/upload", body: strings.Repeat("x", 4000), chunked: c.odds(2)}
	begin := q.body[:c.IntN(len(q.body))]
	var err error
	if p.http2() {
		s := c.session(g, p, 1<<20)
		if s == nil {
			return
		}
		defer s.Close()
		st, begun := s.begin(q, begin, false)
		if begun != nil {
			c.broke("a gateway accepts requests", "%s, %v: %v", g.name, p, begun)
			return
		}
		err = st.await(func(st *stream) bool { return st.ended || st.reset })
	} else {
		x := c.dial1(g, p)
		if x == nil {
			return
		}
		defer x.Close()
		if q.chunked && begin != "" {
			begin = fmt.Sprintf("%x\r\n%s\r\n", len(begin), begin)
		}
		_, _ = io.WriteString(x, q.headerSection()+begin)
		if _, err = x.receive(q.method); err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil
		}
	}
	if err != nil {
		c.broke("a stalled upload ends with a response, or with its connection", "%s, %v: %v", g.name, p, err)
	}
}

// download reads nothing, or slowly, until the exchange has ended.
func (c *client) download(g *gateway, sips bool) {
	p := pick(c.Rand, protocols)
	q := request{method: http.MethodGet, path: "/download"}
	if !p.http2() {
		q.header = [][2]string{{"Connection", "close"}} // it ends so also where it comes whole, on a busy machine
	}
	if p.http2() {
		s := c.session(g, p, 1<<10)
		if s == nil {
			return
		}
		defer s.Close()
		s.mu.Lock()
		s.unread = !sips
		s.mu.Unlock()
		st, err := s.open(q, true)
		if err != nil {
			c.broke("a gateway accepts requests", "%s, %v: %v", g.name, p, err)
			return
		}
		_ = st.await(func(st *stream) bool { return st.ended || st.reset })
		return
	}
	x := c.dial1(g, p)
	if x == nil {
		return
	}
	defer x.Close()
	_, _ = io.WriteString(x, q.headerSection())
	if sips {
		x.sip(slowTimeout + slowTimeout/2)
	} else {
		time.Sleep(slowTimeout + slowTimeout/2)
	}
	_, _ = io.Copy(io.Discard, x.in)
}

// sip reads for a time, and so slowly that the target has always sent more.
func (x *conn1) sip(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := io.CopyN(io.Discard, x.in, 4<<10); err != nil {
			return
		}
	}
}
