package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
)

// interim is about interim responses to clients that go while they are written.
var interim = scenario{
	name:    "interim",
	promise: "each interim response has its own fields, also beside clients that reset",
	clients: 48, few: 128,
	start: func(r *run) func(*client) {
		addr := r.target(hinting)
		mark := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Filter", "1")
				next.ServeHTTP(w, r)
			})
		}
		gateways := append(r.gateways(setup{name: "no filter", targets: addresses(addr)}),
			r.gateways(setup{name: "a filter's field", targets: addresses(addr), filters: []culvert.Filter{mark}})...)
		return func(c *client) {
			g, p := pick(c.Rand, gateways), pick(c.Rand, protocols)
			if p.http2() {
				resetting(c, g, p)
				return
			}
			w := c.connect(g, p)
			if w == nil {
				return
			}
			defer w.Close()
			c.hinted(g, p, w)
		}
	},
}

// hinting sends interim responses whose fields all have their number, and a final one.
func hinting(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		fields := 2
		if p.IntN(2) == 0 {
			fields = 120
		}
		n := p.IntN(6)
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "HTTP/1.1 %d Hint\r\n", []int{102, 103}[p.IntN(2)])
			for j := range fields {
				fmt.Fprintf(&b, "X-Hint-%d-%d: %d\r\n", i, j, i)
			}
			b.WriteString("\r\n")
			if p.IntN(4) == 0 {
				p.send("%s", b.String())
				b.Reset()
				p.pause(time.Millisecond)
			}
		}
		p.send("%sHTTP/1.1 200 OK\r\nX-Hints: %d\r\nX-Hint-Fields: %d\r\nContent-Length: 2\r\n\r\nok", b.String(), n, fields)
	}
}

var hintedRequest = request{method: http.MethodGet, path: "/"}

// hinted runs an exchange to its end and checks the fields.
func (c *client) hinted(g *gateway, p protocol, w wire) {
	resp, ok := c.good(g, p, w, hintedRequest, http.StatusOK)
	if !ok {
		return
	}
	promised, fields := "an interim response has its own fields and no others", resp.header.Get("X-Hint-Fields")
	if n := fmt.Sprint(len(resp.interim)); n != resp.header.Get("X-Hints") {
		c.broke("each interim response comes", "%s, %v: %s of %s", g.name, p, n, resp.header.Get("X-Hints"))
	}
	for i, part := range resp.interim {
		n := 0
		for name, values := range part.header {
			if !strings.HasPrefix(name, fmt.Sprintf("X-Hint-%d-", i)) || len(values) != 1 || values[0] != fmt.Sprint(i) {
				c.broke(promised, "%s, %v: response %d has %s: %q", g.name, p, i, name, values)
				continue
			}
			n++
		}
		if fmt.Sprint(n) != fields {
			c.broke(promised, "%s, %v: response %d has %d fields of %s", g.name, p, i, n, fields)
		}
	}
	for name := range resp.header {
		if strings.HasPrefix(name, "X-Hint-") && name != "X-Hint-Fields" {
			c.broke("no field of an interim response is in the final one", "%s, %v: %s", g.name, p, name)
		}
	}
}

// resetting opens streams, resets most of them at once or a little later, and lets one come to its end.
func resetting(c *client, g *gateway, p protocol) {
	s := c.session(g, p, 1<<20)
	if s == nil {
		return
	}
	defer s.Close()
	for range 4 {
		var open []*stream
		for range 1 + c.IntN(12) {
			c.exchanges.Add(1)
			st, err := s.open(hintedRequest, true)
			if err != nil {
				c.broke("a connection outlives its streams", "%s, %v: %v", g.name, p, err)
				return
			}
			open = append(open, st)
		}
		for _, st := range open {
			c.pause(300 * time.Microsecond)
			_ = st.cancel()
		}
		c.hinted(g, p, s)
	}
}
