package wsupgrade

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// The opcodes of RFC 6455 section 5.2.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

const (
	finBit    = 0x80
	maskBit   = 0x80
	rsvBits   = 0x70
	rsv1Bit   = 0x40 // compressed (RFC 7692)
	opBits    = 0x0F
	lengthBit = 0x7F

	maxHeaderLen = 14
	maxControl   = 125            // bytes of a control frame's payload (RFC 6455 section 5.5)
	maxReason    = maxControl - 2 // after the code of a Close frame
)

// frameHeader is the header of a frame.
type frameHeader struct {
	first  byte // FIN, RSV and opcode
	masked bool
	key    [4]byte
	length uint64
}

func (h frameHeader) opcode() byte { return h.first & opBits }

// headerLen returns the length of a header of which p holds the first bytes, two at least.
func headerLen(p []byte) int {
	n := 2
	switch p[1] & lengthBit {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if p[1]&maskBit != 0 {
		n += 4
	}
	return n
}

// parseHeader parses a whole header.
func parseHeader(p []byte) frameHeader {
	h := frameHeader{first: p[0], masked: p[1]&maskBit != 0, length: uint64(p[1] & lengthBit)}
	p = p[2:]
	switch h.length {
	case 126:
		h.length = uint64(binary.BigEndian.Uint16(p))
		p = p[2:]
	case 127:
		h.length = binary.BigEndian.Uint64(p)
		p = p[8:]
	}
	if h.masked {
		h.key = [4]byte(p)
	}
	return h
}

// appendFrame appends a whole frame to b, masked with a key of its own if the
// receiver is a server (RFC 6455 section 5.3).
func appendFrame(b []byte, first byte, masked bool, payload []byte) []byte {
	second := byte(0)
	if masked {
		second = maskBit
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, first, second|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, first, second|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, first, second|127), uint64(n))
	}
	if !masked {
		return append(b, payload...)
	}
	var key [4]byte
	_, _ = rand.Read(key[:]) // never fails
	b = append(b, key[:]...)
	start := len(b)
	b = append(b, payload...)
	mask(b[start:], key, 0)
	return b
}

// mask masks or unmasks p, whose first byte is at offset at of the payload.
func mask(p []byte, key [4]byte, at uint64) {
	k := [8]byte{}
	for i := range k {
		k[i] = key[(at+uint64(i))&3]
	}
	word := binary.LittleEndian.Uint64(k[:])
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^word)
		p = p[8:]
	}
	for i := range p {
		p[i] ^= k[i]
	}
}

// closePayload returns the payload of a Close frame. 1005, 1006 and 1015 mean that no code was
// received, and must not be sent (RFC 6455 section 7.4.1).
func closePayload(code int, reason string) []byte {
	switch code {
	case 0, 1005, 1006, 1015:
		return nil
	}
	p := binary.BigEndian.AppendUint16(nil, uint16(code))
	return append(p, closeReason(reason)...)
}

// closeReason returns reason as a Close frame can hold it: in UTF-8, of at most maxReason bytes
// (RFC 6455 section 5.5.1).
func closeReason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
