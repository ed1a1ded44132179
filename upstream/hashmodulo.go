package upstream

import (
	"errors"
	"hash/crc32"
	"net/http"
	"strconv"
)

// HashModulo sends requests with the same key to the same target, by the remainder of the key's
// hash: when a target comes or goes, or a weight changes, nearly all keys move, which Hash avoids.
// It chooses as nginx's "hash KEY" without "consistent" does (ngx_http_upstream_hash_module.c), so
// that one can replace the other. Requests with an empty key go in turn. Backup targets are not
// allowed with it.
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

func (h modulo) over(members []*member, before picker) picker {
	return &byRemainder{newWeighted(members), newTurns(members, turnsOf(before)), h.key}
}

type byRemainder struct {
	weighted
	turns // where the key does not decide
	key   func(*http.Request) string
}

// pick is nginx's: each try adds the hash of the key behind the try's number, until it meets a
// target that may be asked; after twenty tries the round robin decides.
func (p *byRemainder) pick(q query) *member {
	key := p.key(q.r)
	if key == "" || len(p.members) == 1 {
		return p.turns.pick(q)
	}
	var number [8]byte
	hash := uint32(0)
	for try := range 21 {
		prefix := uint32(0)
		if try > 0 {
			prefix = crc32.ChecksumIEEE(strconv.AppendInt(number[:0], int64(try), 10))
		}
		hash += checksum(prefix, key) >> 16 & 0x7fff
		if m := p.at(uint(hash)); q.claim(m) {
			return m
		}
	}
	return p.turns.pick(q)
}
