package wsupgrade

// bulk is how long a frame's payload must be to be spliced from socket to socket. Below it a copy
// costs less than the system calls.
const bulk = 32 << 10

// boundary follows the frames of one direction by their headers, so that a frame of our own can be
// put between two of them. A frame that can't be followed (RFC 6455 forbids lengths with the top
// bit) is passed on like any other, and after it the stream has no known boundary any more.
type boundary struct {
	header     [maxHeaderLen]byte
	have, need uint8
	remaining  uint64 // of the payload
	lost       bool
	large      bool // the last frame may be spliced
	closeBegun bool // a Close frame has begun: nothing may follow it
	pong       bool // the last frame is a Pong
}

// atBoundary reports whether the direction is between two frames.
func (b *boundary) atBoundary() bool { return b.have == 0 && b.remaining == 0 && !b.lost }

// advance follows p up to the end of a header or of a payload, and returns how many bytes that is.
func (b *boundary) advance(p []byte) (n int) {
	switch {
	case b.lost:
		return len(p)
	case b.remaining > 0:
		n = int(min(uint64(len(p)), b.remaining))
		b.remaining -= uint64(n)
		return n
	case b.have == 0:
		b.need = 2
	}
	for {
		m := copy(b.header[b.have:b.need], p[n:])
		b.have += uint8(m)
		n += m
		if b.have < b.need {
			return n
		}
		if need := uint8(headerLen(b.header[:2])); need > b.need {
			b.need = need
			continue
		}
		b.startFrame(parseHeader(b.header[:b.need]))
		return n
	}
}

// startFrame is called with a header that is complete.
func (b *boundary) startFrame(h frameHeader) {
	b.have, b.remaining = 0, h.length
	b.lost = h.length>>63 != 0
	b.large = h.length >= bulk && !b.lost
	b.closeBegun = b.closeBegun || h.opcode() == opClose
	b.pong = h.opcode() == opPong
}

// onlyPongs reports whether p, the next bytes, are of Pongs only, or of a header that is not complete. b remains as it is.
func (b boundary) onlyPongs(p []byte) bool {
	for len(p) > 0 {
		p = p[b.advance(p):]
		if b.lost || b.have == 0 && !b.pong {
			return false
		}
	}
	return true
}

// follow follows all of p.
func (b *boundary) follow(p []byte) {
	for len(p) > 0 {
		p = p[b.advance(p):]
	}
}
