package view

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Versions are microseconds, and in the lower bits a number that tells the Views of a
// process apart: what a client has seen of one tells nothing of where it stands in
// another. Those of Views that have ended, and of other processes, are older than the
// first of a View, unless clocks were set back; then they are newer, or another's.
const idBits = 10

var lastID atomic.Uint64

// clock gives a View its versions.
type clock struct {
	id   uint64
	last uint64
}

func newClock() clock {
	c := clock{id: lastID.Add(1) & (1<<idBits - 1)}
	c.next()
	return c
}

// next is above all before, and above the last one by more than what other Views add.
func (c *clock) next() uint64 {
	c.last = max(c.last+1<<idBits, uint64(time.Now().UnixMicro())<<idBits|c.id)
	return c.last
}

// own says whether a version may be one of this View's.
func (c *clock) own(version uint64) bool { return version&(1<<idBits-1) == c.id }

func format(version uint64) string { return strconv.FormatUint(version, 10) }
