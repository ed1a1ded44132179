package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// ends is about trailers that were announced and don't come, and those behind an empty body.
var ends = scenario{
	name:    "ends",
	promise: "each response has its end and the trailers that came",
	clients: 32, few: 320,
	start: func(r *run) func(*client) {
		one := r.target(announcing)
		two, _ := r.serve(http.HandlerFunc(announcingHandler))
		gateways := append(r.gateways(setup{name: "HTTP/1.1 target", targets: addresses(one)}),
			r.gateways(setup{name: toH2C, targets: addresses(two), upstream: upstream.Options{Protocol: upstream.H2C}})...)
		return func(c *client) {
			g, p := pick(c.Rand, gateways), pick(c.Rand, protocols)
			w := c.connect(g, p)
			if w == nil {
				return
			}
			defer w.Close()
			for range 4 {
				if !c.toTheEnd(g, p, w) {
					return
				}
			}
		}
	},
}

// The names of the trailers that a target announces, sends without that, or announces in vain.
const (
	comes   = "X-Comes"
	unasked = "X-Unannounced"
	invain  = "X-In-Vain"
)

const toH2C = "h2c target"

// wish is what a client wants of a target, in a field.
type wish struct{ body, comes, unasked, inVain, slow bool }

func (w wish) String() string {
	return fmt.Sprintf("%t,%t,%t,%t,%t", w.body, w.comes, w.unasked, w.inVain, w.slow)
}

func wished(r *http.Request) (w wish) {
	_, _ = fmt.Sscanf(r.Header.Get("X-Wish"), "%t,%t,%t,%t,%t", &w.body, &w.comes, &w.unasked, &w.inVain, &w.slow)
	return w
}

func (w wish) announced() (names []string) {
	if w.comes {
		names = append(names, comes)
	}
	if w.inVain {
		names = append(names, invain)
	}
	return names
}

// announcing is a target of HTTP/1.1.
func announcing(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		w := wished(q)
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
		for _, name := range w.announced() {
			p.send("Trailer: %s\r\n", name)
		}
		p.send("\r\n")
		if q.Method == http.MethodHead {
			continue
		}
		if w.slow {
			p.pause(2 * time.Millisecond)
		}
		if w.body {
			p.send("4\r\nbody\r\n")
		}
		p.send("0\r\n")
		if w.comes {
			p.send("%s: 1\r\n", comes)
		}
		if w.unasked {
			p.send("%s: 2\r\n", unasked)
		}
		p.send("\r\n")
	}
}

// announcingHandler is a target of HTTP/2.
func announcingHandler(rw http.ResponseWriter, r *http.Request) {
	w := wished(r)
	for _, name := range w.announced() {
		rw.Header().Add("Trailer", name)
	}
	if w.slow {
		_ = http.NewResponseController(rw).Flush()
	}
	if w.body {
		_, _ = io.WriteString(rw, "body")
	}
	if w.comes {
		rw.Header().Set(comes, "1")
	}
	if w.unasked {
		rw.Header().Set(http.TrailerPrefix+unasked, "2")
	}
}

// toTheEnd runs an exchange and reports whether another one may follow.
func (c *client) toTheEnd(g *gateway, p protocol, w wire) bool {
	want := wish{c.odds(2), c.odds(2), c.odds(2), c.odds(2), c.odds(2)}
	q := request{method: http.MethodGet, path: "/", header: [][2]string{{"X-Wish", want.String()}, {"TE", "trailers"}}}
	if c.odds(8) {
		q.method = http.MethodHead
	}
	c.exchanges.Add(1)
	c.fault()
	resp, err := w.exchange(q)
	if err != nil || resp.status != http.StatusOK {
		c.broke("each response has its end", "%s, %v, %s: status %d, error %v, target: body, comes, unannounced, in vain, slow = %v", g.name, p, q.method, resp.status, err, want)
		return false
	}
	if q.method == http.MethodHead {
		return true
	}
	if want.body != (resp.body == "body") {
		c.broke("a body comes as it is", "%s, %v: %q, target: %v", g.name, p, resp.body, want)
	}
	if strings.HasPrefix(g.name, toH2C) && !want.slow && !p.http2() {
		return !resp.closes // a response with a Content-Length has no place for trailers in HTTP/1.1
	}
	for name, value := range map[string]string{comes: valueIf(want.comes, "1"), unasked: valueIf(want.unasked, "2"), invain: ""} {
		if got := resp.trailer.Get(name); got != value {
			c.broke("trailers that come reach the client, and no others", "%s, %v: %s is %q, not %q, target: body, comes, unannounced, in vain, slow = %v", g.name, p, name, got, value, want)
		}
	}
	return !resp.closes
}

// valueIf is the value of what is set, "" where it is not.
func valueIf(set bool, value string) string {
	if set {
		return value
	}
	return ""
}
