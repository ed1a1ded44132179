package wsupgrade

// bulk is how long a frame's payload must be to go from socket to socket without
// passing through this process. Below it a copy costs less than the calls.
const bulk = 32 << 10

// boundary follows the frames of one direction without looking into them, so that a
// frame of our own can be put between two of them. Frames that nobody inspects pass
// as they are; of one that can't be followed (RFC 6455 forbids lengths with the top
// bit) nothing more is known than that the stream has no boundary any more.
type boundary struct {
	head       [maxHeadLen]byte
	have, need uint8
	left       uint64 // of the payload
	lost       bool
	large      bool // the last frame was one that may be spliced
	closed     bool // a Close frame has begun: nothing may follow it
}

// here says whether the direction stands between two frames.
func (b *boundary) here() bool { return b.have == 0 && b.left == 0 && !b.lost }

// take follows p up to the end of a head or of a payload, and returns how far that
// is.
func (b *boundary) take(p []byte) (n int) {
	switch {
	case b.lost:
		return len(p)
	case b.left > 0:
		n = int(min(uint64(len(p)), b.left))
		b.left -= uint64(n)
		return n
	case b.have == 0:
		b.need = 2
	}
	for {
		m := copy(b.head[b.have:b.need], p[n:])
		b.have += uint8(m)
		n += m
		if b.have < b.need {
			return n
		}
		if need := uint8(headLen(b.head[:2])); need > b.need {
			b.need = need
			continue
		}
		b.begin(parseHead(b.head[:b.need]))
		return n
	}
}

// begin is called with a head that is complete.
func (b *boundary) begin(h frameHead) {
	b.have, b.left = 0, h.length
	b.lost = h.length>>63 != 0
	b.large = h.length >= bulk && !b.lost
	b.closed = b.closed || h.opcode() == opClose
}

// follow follows all of p.
func (b *boundary) follow(p []byte) {
	for len(p) > 0 {
		p = p[b.take(p):]
	}
}
