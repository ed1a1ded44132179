package simulate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"

	"github.com/culvert-go/culvert/upstream"
)

// addIntroduced chooses histories whose connections to targets begin with a header of the PROXY protocol
// (upstream.Options.ProxyProtocol). Connections of HTTP/2 can't.
func (p *Plan) addIntroduced(c *Choices) {
	if c.Bool(8) && !p.Gateway.H2Targets {
		p.Gateway.Introduces = Pick(c, upstream.ProxyProtocolV1, upstream.ProxyProtocolV2)
	}
}

// introduction is the header of the PROXY protocol of a connection: the client that it names, "" where it names none.
type introduction struct{ client, server string }

// introduced reads the header with which a connection begins, and reports whether there is one, or none is planned. A connection may
// end before it is whole.
func (t *target) introduced(in *endNoter, r *bufio.Reader) (i introduction, ok bool) {
	var err error
	switch t.world.plan.Gateway.Introduces {
	case upstream.ProxyProtocolV1:
		i, err = readIntroduction1(r)
	case upstream.ProxyProtocolV2:
		i, err = readIntroduction2(r)
	}
	if err != nil && in.err == nil {
		t.world.journal.Break("introduced", "%s read no header of the PROXY protocol: %v", t.plan.Addr, err)
	}
	return i, err == nil
}

// readIntroduction1 reads a header of version 1 (section 2.1 of the specification).
func readIntroduction1(r *bufio.Reader) (i introduction, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return i, err
	}
	words := strings.Split(strings.TrimSuffix(line, "\r\n"), " ")
	switch {
	case len(line) > 107 || !strings.HasSuffix(line, "\r\n") || words[0] != "PROXY":
		return i, errors.New("the line " + line)
	case len(words) == 2 && words[1] == "UNKNOWN":
		return i, nil
	case len(words) != 6 || words[1] != "TCP4":
		return i, errors.New("the line " + line)
	}
	return introduction{net.JoinHostPort(words[2], words[4]), net.JoinHostPort(words[3], words[5])}, nil
}

// readIntroduction2 reads a header of version 2 (section 2.2).
func readIntroduction2(r *bufio.Reader) (i introduction, err error) {
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	head := make([]byte, 16)
	for n := range head {
		if head[n], err = r.ReadByte(); err != nil {
			return i, err
		}
		if n < len(signature) && head[n] != signature[n] {
			return i, errors.New("another signature")
		}
	}
	addrs := make([]byte, binary.BigEndian.Uint16(head[14:]))
	for n := range addrs {
		if addrs[n], err = r.ReadByte(); err != nil {
			return i, err
		}
	}
	switch {
	case head[12] == 0x20: // LOCAL
		return i, nil
	case head[12] != 0x21 || head[13] != 0x11 || len(addrs) < 12: // PROXY, TCP over IPv4
		return i, errors.New("another command or family")
	}
	end := func(ip, port []byte) string {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip)), binary.BigEndian.Uint16(port)).String()
	}
	return introduction{end(addrs[:4], addrs[8:]), end(addrs[4:8], addrs[10:])}, nil
}

// introducedAs: a connection carries requests of the client alone that its header names, and of the gateway itself if it names none.
func (r *ruler) introducedAs() {
	g := &r.w.plan.Gateway
	if g.Introduces == 0 {
		return
	}
	p := r.w.passage(r.e, r.client.Kind)
	for _, s := range r.sights {
		if s.Client.client == "" {
			r.fail("introduced", "%s saw it on a connection whose header names no client", s.Target)
			continue
		}
		r.w.journal.manners.Add("target: a request of a client that the connection names", 1)
		if !r.w.plan.exact() {
			continue // all clients have one address
		}
		named, port, _ := net.SplitHostPort(s.Client.client)
		if want := r.introducedFor(p); p.count("RealIP") <= 1 && named != want {
			r.fail("introduced", "%s saw it on a connection of the client %s, want %s", s.Target, named, want)
		}
		if peers := r.peers(); p.count("RealIP") == 0 && !peers[s.Client.client] || p.count("RealIP") > 0 && port != "0" && !peers[s.Client.client] {
			r.fail("introduced", "%s saw it on a connection of %s, it was received from %v", s.Target, s.Client.client, peers)
		}
		if server, _, _ := net.SplitHostPort(s.Client.server); server != host(gatewayAddr) {
			r.fail("introduced", "%s saw it on a connection that names the gateway %s", s.Target, s.Client.server)
		}
	}
}

// introducedFor returns the address of the client: that which trusted proxies report, or else the peer's.
func (r *ruler) introducedFor(p *passage) string {
	if p.last.trusted && r.e.Forwarded {
		reported, _, _ := strings.Cut(forwardedFor, ",") // the proxy behind it is of the trusted network
		return reported
	}
	return r.address()
}

// peers returns the addresses from which the gateway has received the request.
func (r *ruler) peers() map[string]bool {
	list := map[string]bool{}
	for _, p := range r.w.journal.passages {
		if p.Token == r.e.Token || p.Lists == r.e.Token {
			list[p.Peer] = true
		}
	}
	return list
}

// ownConnection checks the header of a connection that carries a check, which is the gateway's own, or the probe at the end.
func (t *target) ownConnection(i introduction, check bool) {
	if t.world.plan.Gateway.Introduces == 0 {
		return
	}
	if own := i.client == ""; own != check {
		t.world.journal.Break("introduced", "%s: check %v, and the connection names the client %q", t.plan.Addr, check, i.client)
	}
}
