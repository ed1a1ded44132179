package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert/proxy"
)

const lateTimeout = 200 * time.Millisecond

// late is about responses that come when the time of their exchange is nearly over.
var late = scenario{
	name:    "late",
	promise: "an exchange ends with its response or with a timeout's, never in silence",
	clients: 32, few: 96,
	start: func(r *run) func(*client) {
		gateways := r.gateways(setup{name: "Options.Timeout", targets: addresses(r.target(asSlow)), proxy: proxy.Options{Timeout: lateTimeout}})
		return func(c *client) {
			g, p := pick(c.Rand, gateways), pick(c.Rand, protocols)
			w := c.connect(g, p)
			if w == nil {
				return
			}
			defer w.Close()
			for range 3 {
				wait := lateTimeout - 10*time.Millisecond + upTo(c.Rand, 20*time.Millisecond)
				q := request{method: http.MethodGet, path: "/", header: [][2]string{{"X-Wait", wait.String()}}}
				if c.odds(2) {
					q.method, q.body, q.chunked = http.MethodPost, "body", c.odds(2)
				}
				c.exchanges.Add(1)
				resp, err := w.exchange(q)
				if err != nil || !slices.Contains(slowEnds, resp.status) {
					c.broke("a response of a few bytes comes, or a timeout's in its place", "%s, %v, %s: status %d, error %v", g.name, p, q.method, resp.status, err)
				}
				if err != nil || resp.closes {
					return
				}
			}
		}
	},
}
