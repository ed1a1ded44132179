package proxy

import (
	"net/netip"
	"time"
)

// hashKey is the part of a client's address that IPHash looks at.
type hashKey struct {
	bytes [16]byte
	n     int
}

// clientKey takes the key out of a RemoteAddr. Of an IPv4 address it is the
// first three bytes; an address that can't be read counts as 0.0.0, as nginx
// treats those of unix sockets.
func clientKey(remoteAddr string) hashKey {
	addr, err := netip.ParseAddrPort(remoteAddr)
	if err != nil {
		return hashKey{n: 3}
	}
	ip := addr.Addr()
	if ip.Is4() {
		four := ip.As4()
		k := hashKey{n: 3}
		copy(k.bytes[:3], four[:3])
		return k
	}
	return hashKey{bytes: ip.As16(), n: 16}
}

// byHash is nginx's ip_hash: the hash goes on over the tries until it meets a
// target that may be asked; after twenty tries the round robin decides, which
// ok = false says. The constants are nginx's.
func (g *peerGroup) byHash(key hashKey, done tried, now time.Time) (chosen *peer, ok bool) {
	hash := 89
	for range 21 {
		for _, b := range key.bytes[:key.n] {
			hash = (hash*113 + int(b)) % 6271
		}
		p := g.at(hash % g.total)
		if !done.has(p) && p.usable(now) {
			p.touch(now)
			return p, true
		}
	}
	return nil, false
}

// at returns the target in whose share of the weights the point w lies.
func (g *peerGroup) at(w int) *peer {
	for _, p := range g.peers {
		if w < p.Weight {
			return p
		}
		w -= p.Weight
	}
	return nil
}
