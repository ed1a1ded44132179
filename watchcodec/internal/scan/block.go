package scan

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is the number of JSON bytes that are classified together.
const blockSize = 64

// block has bitmasks that classify 64 bytes; the lowest bit is the first byte.
type block struct {
	quote, backslash uint64
	open, close      uint64 // brackets, square or curly
	curly            uint64 // of the brackets, the curly ones; undefined for other bytes
}

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// classifyPortable is classify for machines without an assembly version.
func classifyPortable(p []byte, blocks []block) {
	for i := range blocks {
		b := block{}
		for at := 0; at < blockSize; at += 8 {
			w := binary.LittleEndian.Uint64(p[i*blockSize+at:])
			b.quote |= gather(equal(w, '"')) << at
			b.backslash |= gather(equal(w, '\\')) << at
			// In ASCII, [ and { differ in this bit only, and so do ] and }.
			folded := w | 0x20*ones
			b.open |= gather(equal(folded, '{')) << at
			b.close |= gather(equal(folded, '}')) << at
			b.curly |= gather(w<<2&highs) << at
		}
		blocks[i] = b
	}
}

// equal returns a word with the high bit of each byte set that is c in w.
func equal(w uint64, c byte) uint64 {
	x := w ^ uint64(c)*ones
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// gather packs the high bits of w into a byte. No other bits of w may be set.
func gather(w uint64) uint64 { return w >> 7 * 0x0102040810204080 >> 56 }

// inStrings returns a mask of the bytes within strings, opening quotes included and closing quotes
// not. quotes must be the quotes that no backslash escapes, and no string may be open before the
// block.
func inStrings(quotes uint64) uint64 {
	quotes ^= quotes << 1
	quotes ^= quotes << 2
	quotes ^= quotes << 4
	quotes ^= quotes << 8
	quotes ^= quotes << 16
	return quotes ^ quotes<<32
}

// escaped returns a mask of the bytes that a backslash escapes. next is 1 if the block's last
// byte escapes the byte after the block. before is 1 if the block's first byte is escaped.
func escaped(backslashes, before uint64) (mask, next uint64) {
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
