package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert/proxy"
)

const quickTimeout = 2 * time.Second // a busy machine needs a second for what takes a millisecond

// quick is about the requests behind slow ones on a kept connection.
var quick = scenario{
	name:    "quick",
	promise: "what a slow exchange leaves does not meet the next request of its connection",
	clients: 64, few: 64,
	start: func(r *run) func(*client) {
		gateways := r.gateways(setup{name: "Options.Timeout", targets: addresses(r.target(asSlow)), proxy: proxy.Options{Timeout: quickTimeout}})
		return func(c *client) {
			g, p := pick(c.Rand, gateways), pick(c.Rand, protocols)
			w := c.connect(g, p)
			if w == nil {
				return
			}
			defer w.Close()
			for range 2 {
				if !slowThenQuick(c, g, p, w) {
					return
				}
			}
		}
	},
}

// asSlow reads the body and takes as long as the request says.
func asSlow(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		if wait, err := time.ParseDuration(q.Header.Get("X-Wait")); err == nil {
			p.run.fault()
			time.Sleep(wait)
		}
		p.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

// slowEnds are the statuses of slow exchanges: 408 where the machine is so busy that the time is over
// before the body is read.
var slowEnds = []int{http.StatusOK, http.StatusRequestTimeout, http.StatusGatewayTimeout}

// slowThenQuick reports whether the connection is kept.
func slowThenQuick(c *client, g *gateway, p protocol, w wire) bool {
	wait := quickTimeout / 10
	if c.odds(2) {
		wait = 2 * quickTimeout
	}
	late := request{method: http.MethodPost, path: "/slow", body: "slow", chunked: c.odds(2), header: [][2]string{{"X-Wait", wait.String()}}}
	c.exchanges.Add(1)
	resp, err := w.exchange(late)
	if err != nil || !slices.Contains(slowEnds, resp.status) {
		c.broke("a slow exchange ends with its response or a timeout", "%s, %v: status %d, error %v", g.name, p, resp.status, err)
		return false
	}
	if resp.closes {
		return false
	}
	c.pause(3 * time.Millisecond)
	for i := range 3 {
		body := fmt.Sprint("quick ", i)
		c.exchanges.Add(1)
		resp, err = w.exchange(request{method: http.MethodPost, path: "/quick", body: body, chunked: c.odds(2)})
		if err != nil {
			c.broke("a connection that was said to be kept has the next response", "%s, %v: %v", g.name, p, err)
			return false
		}
		if resp.status == http.StatusOK && resp.body != body {
			c.broke("a request gets its own response", "%s, %v: %q to %q", g.name, p, resp.body, body)
			return false
		}
		if resp.closes {
			return false
		}
	}
	return true
}
