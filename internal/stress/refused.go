package main

import (
	"io"
	"net/http"
	"net/url"

	"github.com/culvert-go/culvert/proxy"
)

// refused is about requests that the gateway itself can't send.
var refused = scenario{
	name:    "refused",
	promise: "a request that can't be sent is its client's or the gateway's fault: targets and other clients don't notice",
	clients: 24, few: 240,
	start: func(r *run) func(*client) {
		targets := addresses(r.target(plainTarget), r.target(plainTarget))
		rewrite := func(o *proxy.Outbound) {
			o.SetXForwarded()
			if claim := o.In.Header.Get("X-Claim"); claim != "" {
				text, _ := url.QueryUnescape(claim)
				o.Out.Header.Set("X-User", text)
			}
		}
		gateways := append(r.gateways(setup{name: "plain", targets: targets, proxy: proxy.Options{Rewrite: rewrite}}),
			r.gateways(setup{name: "Retry.Errors", targets: targets, proxy: proxy.Options{Rewrite: rewrite, Retry: proxy.Retry{Errors: true, NonIdempotent: true}}})...)
		return func(c *client) {
			g := pick(c.Rand, gateways)
			if c.odds(3) {
				unsendable(c, g)
			} else {
				sendable(c, g)
			}
			c.allHealthy(g)
		}
	},
}

// plainTarget responds with the body that it gets.
func plainTarget(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		if q.Header.Get("X-Injected") != "" {
			p.run.broke("a value is kept one field", "the target got X-Injected")
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

// allHealthy checks that no target is out.
func (c *client) allHealthy(g *gateway) {
	for t := range g.group.Targets() {
		if !t.Healthy || t.Fails > 0 {
			c.broke("a target that does nothing wrong has no failures", "%s: %d failures of %s, healthy: %v", g.name, t.Fails, t.Target.Addr, t.Healthy)
		}
	}
}

func sendable(c *client, g *gateway) {
	p := pick(c.Rand, protocols)
	w := c.connect(g, p)
	if w == nil {
		return
	}
	defer w.Close()
	for range 1 + c.IntN(4) {
		q := request{method: http.MethodPost, path: "/", body: "good", chunked: c.odds(2)}
		if resp, ok := c.good(g, p, w, q, http.StatusOK); ok && resp.body != "good" {
			c.broke("a request gets its own response", "%s: %q", g.name, resp.body)
		}
	}
}

// announcements are names that are no trailers', or no names.
var announcements = []string{"X T", "Content-Type", "If-Match", "Authorization", "Cache-Control", "Range", "TE", "Host",
	"X-Good, Content-Encoding", "Connection", "Set-Cookie", "Max-Forwards", "X\tT", "Content-Length", "Trailer", "(", "\"X\""}

// claims are values that end a line early.
var claims = []string{"x%0D%0AX-Injected:%201", "x%0AX-Injected:%201", "x%0D", "x%00y", "%7F%01"}

// unsendable sends a request that something is wrong with.
func unsendable(c *client, g *gateway) {
	c.fault()
	c.exchanges.Add(1)
	p := pick(c.Rand, protocols)
	w := c.connect(g, p)
	if w == nil {
		return
	}
	defer w.Close()
	q := request{method: pick(c.Rand, []string{"POST", "PUT"}), path: "/", body: "bad", chunked: true}
	wrong := pick(c.Rand, announcements)
	if c.odds(2) {
		wrong = pick(c.Rand, claims)
		q.header = [][2]string{{"X-Claim", wrong}}
	} else {
		q.header = [][2]string{{"Trailer", wrong}}
	}
	switch resp, err := w.exchange(q); {
	case err != nil && p.http2(): // malformed for net/http's server itself
	case err != nil:
		c.broke("a request that can't be sent has a response", "%s, %v: %q: %v", g.name, p, wrong, err)
	case resp.status >= 502:
		c.broke("a request that can't be sent is not said to be a target's failure", "%s, %v: status %d to %q", g.name, p, resp.status, wrong)
	}
}
