package view

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Versions are microseconds, with a number in the lower bits that distinguishes the Views of a
// process: a version of one View means nothing in another. Versions of Views that have ended, and
// of other processes, are less than the first version of a View, unless clocks were set back; then
// they may be greater, or another View's.
const idBits = 10

var lastID atomic.Uint64

// clock generates the versions of a View.
type clock struct {
	id   uint64
	last uint64
}

func newClock() clock {
	c := clock{id: lastID.Add(1) & (1<<idBits - 1)}
	c.next()
	return c
}

// next returns a version that is greater than all before, and greater than the last one by more
// than the numbers of other Views add.
func (c *clock) next() uint64 {
	c.last = max(c.last+1<<idBits, uint64(time.Now().UnixMicro())<<idBits|c.id)
	return c.last
}

// own reports whether a version may be one of this View's.
func (c *clock) own(version uint64) bool { return version&(1<<idBits-1) == c.id }

func format(version uint64) string { return strconv.FormatUint(version, 10) }
