package watchcodec

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is how many bytes of JSON are looked at together.
const blockSize = 64

// block says of 64 bytes which of them are what; the lowest bit is the first byte.
type block struct {
	quote, backslash uint64
	open, close      uint64 // brackets, square or curly
	curly            uint64 // of those, the curly ones; what it says of other bytes is nothing
}

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// classifyPortable is classify where there is no assembly for it.
func classifyPortable(p []byte, blocks []block) {
	for i := range blocks {
		b := block{}
		for at := 0; at < blockSize; at += 8 {
			w := binary.LittleEndian.Uint64(p[i*blockSize+at:])
			b.quote |= gather(equal(w, '"')) << at
			b.backslash |= gather(equal(w, '\\')) << at
			// ASCII: [ and {, and ] and }, differ in this bit alone.
			folded := w | 0x20*ones
			b.open |= gather(equal(folded, '{')) << at
			b.close |= gather(equal(folded, '}')) << at
			b.curly |= gather(w<<2&highs) << at
		}
		blocks[i] = b
	}
}

// equal has the high bit of each byte of w set that is c.
func equal(w uint64, c byte) uint64 {
	x := w ^ uint64(c)*ones
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// gather makes a byte of the high bits of w, of which no other is set.
func gather(w uint64) uint64 { return w >> 7 * 0x0102040810204080 >> 56 }

// inStrings has a bit for each byte of a string, its opening quote included and its closing
// one not, if the quotes are those that no backslash escapes and none is open before.
func inStrings(quotes uint64) uint64 {
	quotes ^= quotes << 1
	quotes ^= quotes << 2
	quotes ^= quotes << 4
	quotes ^= quotes << 8
	quotes ^= quotes << 16
	return quotes ^ quotes<<32
}

// escaped has a bit for each byte that a backslash escapes, and says whether the last one
// escapes the byte behind the block. before is 1 if the block's first byte is escaped.
func escaped(backslashes, before uint64) (mask, behind uint64) {
	for backslashes &^= before; backslashes != 0; {
		at := bits.TrailingZeros64(backslashes)
		if at == blockSize-1 {
			return mask | before, 1
		}
		mask |= 2 << at
		backslashes &^= 3 << at
	}
	return mask | before, 0
}
