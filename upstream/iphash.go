package upstream

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/client"
)

// IPHash sends a client's requests to the same target by its address: by the first
// three bytes of an IPv4 address, or the whole of an IPv6 address. It chooses the same
// targets as nginx's ip_hash (ngx_http_upstream_ip_hash_module.c), so that one can
// replace the other. The address is the one that filters.RealIP found, or the
// connection's. Backup targets are not allowed.
func IPHash() Balance { return ipHash{} }

type ipHash struct{}

func (ipHash) check(targets []Target) error { return noBackup(targets, "IPHash") }

func (ipHash) newPicker(members []*member, before picker) picker {
	return &byAddress{newWeighted(members), newRoundRobin(members, roundRobinOf(before))}
}

type byAddress struct {
	weighted
	roundRobinPicker // if the address does not decide
}

// pick follows nginx, as do its constants: each attempt continues the hash, until it
// selects an available target. After twenty further attempts the round robin decides.
func (p *byAddress) pick(q query) *member {
	if len(p.members) == 1 {
		return p.roundRobinPicker.pick(q)
	}
	key, n := addressKey(q.r)
	hash := 89
	for range 21 {
		for _, b := range key[:n] {
			hash = (hash*113 + int(b)) % 6271
		}
		if m := p.at(uint(hash)); q.acquire(m) {
			return m
		}
	}
	return p.roundRobinPicker.pick(q)
}

// binds implements binder.
func (p *byAddress) binds(*http.Request) bool { return true }

// addressKey returns the part of the client's address that is hashed. An address that
// can't be parsed counts as 0.0.0, as nginx treats clients of unix sockets.
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
