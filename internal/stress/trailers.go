package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// trailers is about trailers that are meant for one connection, or forged.
var trailers = scenario{
	name:    "trailers",
	promise: "of trailers only those that may travel reach the other side",
	clients: 32, few: 320,
	start: func(r *run) func(*client) {
		gateways := r.gateways(setup{name: "trailers", targets: addresses(r.target(mirrorTrailers))})
		return func(c *client) {
			g, p := pick(c.Rand, gateways), pick(c.Rand, protocols)
			w := c.connect(g, p)
			if w == nil {
				return
			}
			defer w.Close()
			for range 4 {
				if !c.trailed(g, p, w) {
					return
				}
			}
		}
	},
}

// forbidden are trailers that end at the gateway: those of the connection and of the framing.
var forbidden = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "X-Listed"}

// forged are those that only a proxy may say of a client: they mean something in requests alone.
var forged = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded"}

// permitted are those that travel.
var permitted = []string{"Checksum", "Grpc-Status", "X-One", "X-Two", "Server-Timing"}

// someTrailers returns a few of both kinds, in any order.
func (c *client) someTrailers(http2 bool) (list [][2]string) {
	for i, name := range slices.Concat(permitted, forbidden, forged) {
		if c.odds(4) && !(http2 && slices.Contains(malformed2, name)) {
			list = append(list, [2]string{name, fmt.Sprint("v", i)})
		}
	}
	c.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// malformed2 are malformed in HTTP/2: net/http resets the stream.
var malformed2 = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host"}

// mirrorTrailers sends back what it got as trailers, in a field, and such trailers as another field
// has it do so.
func mirrorTrailers(p *peer) {
	for {
		q := p.request()
		if q == nil {
			return
		}
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return
		}
		got := slices.Sorted(maps.Keys(q.Trailer))
		for i, name := range got {
			got[i] = name + "=" + strings.Join(q.Trailer[name], ";")
		}
		p.send("HTTP/1.1 200 OK\r\nX-Got: %s\r\nTransfer-Encoding: chunked\r\nConnection: X-Listed\r\n", strings.Join(got, ","))
		if announced := q.Header.Get("X-Announce"); announced != "" {
			p.send("Trailer: %s\r\n", announced)
		}
		p.send("\r\n4\r\nbody\r\n0\r\n")
		for field := range strings.SplitSeq(q.Header.Get("X-Send"), ",") {
			if name, value, ok := strings.Cut(field, "="); ok {
				p.send("%s: %s\r\n", name, value)
			}
		}
		p.send("\r\n")
	}
}

// trailed runs an exchange and reports whether another one may follow.
func (c *client) trailed(g *gateway, p protocol, w wire) bool {
	up, down := c.someTrailers(p.http2()), c.someTrailers(false)
	var back []string
	for _, f := range down {
		back = append(back, f[0]+"="+f[1])
	}
	q := request{method: http.MethodPost, path: "/", body: "body", trailer: up, header: [][2]string{{"X-Send", strings.Join(back, ",")}, {"TE", "trailers"}}}
	if !p.http2() {
		q.chunked = true
		q.header = append(q.header, [2]string{"Connection", "X-Listed"})
	}
	announced := c.announce(up)
	if announced != "" {
		q.header = append(q.header, [2]string{"Trailer", announced})
	}
	if names := c.announce(down); names != "" {
		q.header = append(q.header, [2]string{"X-Announce", names})
	}
	c.fault()
	resp, ok := c.good(g, p, w, q, http.StatusOK)
	if !ok {
		return false
	}
	got := http.Header{}
	for field := range strings.SplitSeq(resp.header.Get("X-Got"), ",") {
		if name, value, ok := strings.Cut(field, "="); ok {
			got[name] = []string{value}
		}
	}
	if p.http2() { // of which net/http's server drops what was not announced
		up = slices.DeleteFunc(up, func(f [2]string) bool { return !slices.Contains(strings.Split(announced, ", "), f[0]) })
	}
	end := slices.Concat(forbidden, forged)
	if p.http2() { // which has no Connection that could list it
		end = slices.DeleteFunc(end, func(name string) bool { return name == "X-Listed" })
	}
	c.checkTrailers(fmt.Sprintf("%s, %v, to the target", g.name, p), up, got, end)
	c.checkTrailers(fmt.Sprintf("%s, %v, to the client", g.name, p), down, resp.trailer, forbidden)
	return !resp.closes
}

// announce names some of the trailers that may be announced.
func (c *client) announce(list [][2]string) string {
	var names []string
	for _, f := range list {
		if c.odds(2) && !slices.Contains(malformed2, f[0]) {
			names = append(names, f[0])
		}
	}
	return strings.Join(names, ", ")
}

// checkTrailers compares the trailers that were received with those that were sent, of which some end
// at the gateway.
func (c *client) checkTrailers(where string, sent [][2]string, got http.Header, end []string) {
	want := http.Header{}
	for _, f := range sent {
		if slices.Contains(permitted, f[0]) {
			want[f[0]] = []string{f[1]}
		}
	}
	for name, values := range got {
		if slices.Contains(end, name) {
			c.broke("trailers of a connection, of the framing and of proxies end at the gateway", "%s: %s: %q", where, name, values)
		}
	}
	for name, values := range want {
		if !slices.Equal(got[name], values) {
			c.broke("trailers that may travel do so", "%s: %s: %q, sent %q", where, name, got[name], values)
		}
	}
}
