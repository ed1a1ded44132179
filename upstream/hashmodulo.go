package upstream

import (
	"errors"
	"hash/crc32"
	"net/http"
	"strconv"
)

// HashModulo sends requests with the same key to the same target, by the remainder of the key's
// hash. When a target is added or removed, or a weight changes, nearly all keys move, which Hash avoids.
// It chooses the same targets as nginx's "hash KEY" without "consistent"
// (ngx_http_upstream_hash_module.c), so that one can replace the other. Requests with an empty key are
// balanced by round robin. Backup targets are not allowed. key must not be nil, and must be safe for
// concurrent use.
func HashModulo(key func(*http.Request) string) Balance { return modulo{key} }

type modulo struct {
	key func(*http.Request) string
}

func (h modulo) check(targets []Target) error {
	if h.key == nil {
		return errors.New("HashModulo has no key function")
	}
	return noBackup(targets, "HashModulo")
}

func (h modulo) newPicker(members []*member, before picker) picker {
	return &byRemainder{newWeighted(members), newRoundRobin(members, roundRobinOf(before)), h.key}
}

type byRemainder struct {
	weighted
	roundRobinPicker // if the key does not decide
	key              func(*http.Request) string
}

// pick follows nginx: each attempt adds the hash of the attempt's number followed by the key, until the
// sum selects an available target. After twenty further attempts the round robin decides.
func (p *byRemainder) pick(q query) *member {
	key := p.key(q.r)
	if key == "" || len(p.members) == 1 {
		return p.roundRobinPicker.pick(q)
	}
	var number [8]byte
	hash := uint32(0)
	for attempt := range 21 {
		prefix := uint32(0)
		if attempt > 0 {
			prefix = crc32.ChecksumIEEE(strconv.AppendInt(number[:0], int64(attempt), 10))
		}
		hash += checksum(prefix, key) >> 16 & 0x7fff
		if m := p.at(uint(hash)); q.acquire(m) {
			return m
		}
	}
	return p.roundRobinPicker.pick(q)
}

// binds implements binder.
func (p *byRemainder) binds(r *http.Request) bool { return p.key(r) != "" }
