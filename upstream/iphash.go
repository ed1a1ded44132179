package upstream

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/client"
)

// IPHash keeps a client with its target by its address: the first three bytes of
// an IPv4 address, the whole of an IPv6 address. It chooses as nginx's ip_hash
// does (ngx_http_upstream_ip_hash_module.c), so that one can replace the other.
// The address is the one that filters.RealIP found, or the connection's. Backup
// targets are not allowed with it.
func IPHash() Balance { return ipHash{} }

type ipHash struct{}

func (ipHash) check(targets []Target) error { return noBackup(targets, "IPHash") }

func (ipHash) over(members []*member, before picker) picker {
	return &byAddress{newWeighted(members), newTurns(members, turnsOf(before))}
}

type byAddress struct {
	weighted
	turns // where the address does not decide
}

// pick is nginx's: the hash goes on over the tries until it meets a target that
// may be asked; after twenty tries the round robin decides. The constants are
// nginx's.
func (p *byAddress) pick(q query) *member {
	if len(p.members) == 1 {
		return p.turns.pick(q)
	}
	key, n := addressKey(q.r)
	hash := 89
	for range 21 {
		for _, b := range key[:n] {
			hash = (hash*113 + int(b)) % 6271
		}
		if m := p.at(uint(hash)); q.claim(m) {
			return m
		}
	}
	return p.turns.pick(q)
}

// addressKey is the part of the client's address that counts. An address that
// can't be read counts as 0.0.0, as nginx treats those of unix sockets.
func addressKey(r *http.Request) (key [16]byte, n int) {
	addr := client.Addr(r)
	switch {
	case addr.Is4():
		four := addr.As4()
		copy(key[:], four[:3])
		return key, 3
	case addr.Is6():
		return addr.As16(), 16
	}
	return key, 3
}
