package upstream

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"net/http"
	"slices"
	"strings"
)

// Hash sends requests with the same key to the same target. When a target is added
// or removed, only its own share of the keys moves: it is the consistent hashing
// of nginx's "hash KEY consistent" (ngx_http_upstream_hash_module.c, ketama), and
// chooses the same targets. Requests with an empty key are balanced by round robin. Backup
// targets are not allowed. key must not be nil, and must be safe for concurrent use.
func Hash(key func(*http.Request) string) Balance { return hashing{key} }

type hashing struct {
	key func(*http.Request) string
}

func (h hashing) check(targets []Target) error {
	if h.key == nil {
		return errors.New("Hash has no key function")
	}
	return noBackup(targets, "Hash")
}

func (h hashing) newPicker(members []*member, before picker) picker {
	return newRing(h.key, members, roundRobinOf(before))
}

// ring is the circle of hashes with the targets' points on it.
type ring struct {
	roundRobinPicker // if the key does not decide
	key              func(*http.Request) string
	points           []point
	starts           []int32 // starts[i] is the index of the first point whose high bits are i; it spares a search
	shift            int     // the number of bits below the high bits
}

type point struct {
	hash uint32
	m    *member
}

// pointsPerWeight is the number of points for each unit of weight, as in nginx.
const pointsPerWeight = 160

// maxPoints bounds the memory of a ring. Weights are rounded if there would be more.
const maxPoints = 1 << 22

func newPoints(members []*member) []point {
	total := 0
	for _, m := range members {
		total += m.Weight
	}
	divisor := max(1, (total*pointsPerWeight+maxPoints-1)/maxPoints)
	points := make([]point, 0, total/divisor*pointsPerWeight)
	for _, m := range members {
		points = appendPoints(points, m, max(1, m.Weight/divisor)*pointsPerWeight)
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.hash, b.hash) })
	return slices.CompactFunc(points, func(a, b point) bool { return a.hash == b.hash })
}

// appendPoints adds n points of m: crc32(HOST \0 PORT PREVIOUS), as nginx and
// Cache::Memcached::Fast make them.
func appendPoints(points []point, m *member, n int) []point {
	host, port := m.Addr, ""
	if m.addr.Unix {
		host = m.addr.Name
	} else if i := strings.LastIndexByte(m.Addr, ':'); i >= 0 {
		host, port = m.Addr[:i], m.Addr[i+1:]
	}
	base := crc32.ChecksumIEEE([]byte(host + "\x00" + port))
	var previous [4]byte
	for range n {
		hash := crc32.Update(base, crc32.IEEETable, previous[:])
		points = append(points, point{hash, m})
		binary.LittleEndian.PutUint32(previous[:], hash)
	}
	return points
}

func newRing(key func(*http.Request) string, members []*member, before roundRobinPicker) *ring {
	r := &ring{key: key, points: newPoints(members), roundRobinPicker: newRoundRobin(members, before)}
	high := bits.Len(uint(len(r.points)))
	r.shift = 32 - high
	r.starts = make([]int32, 1<<high)
	at := 0
	for i := range r.starts {
		for at < len(r.points) && int(r.points[at].hash>>r.shift) < i {
			at++
		}
		r.starts[i] = int32(at)
	}
	return r
}

// pick goes from the key's point to the next ones until it finds one of an available
// target; after twenty further points the round robin decides, as in nginx.
func (r *ring) pick(q query) *member {
	key := r.key(q.r)
	if key == "" {
		return r.roundRobinPicker.pick(q)
	}
	hash := checksum(0, key)
	at := int(r.starts[hash>>r.shift])
	for at < len(r.points) && r.points[at].hash < hash {
		at++
	}
	for i := range 21 {
		if m := r.points[(at+i)%len(r.points)].m; q.acquire(m) {
			return m
		}
	}
	return r.roundRobinPicker.pick(q)
}

// binds implements binder.
func (r *ring) binds(of *http.Request) bool { return r.key(of) != "" }

// checksum is crc32.Update for a string, without a copy of it.
func checksum(before uint32, s string) uint32 {
	crc := ^before
	for i := range len(s) {
		crc = crc32.IEEETable[byte(crc)^s[i]] ^ crc>>8
	}
	return ^crc
}
