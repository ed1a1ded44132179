package simulate

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"io"
)

// acceptOf returns the Sec-WebSocket-Accept of a key (RFC 6455 section 4.2.2).
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// frames returns a content as messages of up to 10,000 bytes, or of up to 60,000 for every
// other exchange, masked with a key of zeros where a client sends them.
func frames(opcode byte, c Content, masked bool) []byte {
	var out []byte
	most := int64(10_000)
	if c.Stream>>4%2 == 1 {
		most = 60_000 // long enough for a gateway to splice
	}
	for at := int64(0); at < c.Length; {
		n := min(most, c.Length-at)
		out = append(out, 0x80|opcode)
		mask := byte(0)
		if masked {
			mask = 0x80
		}
		if n < 126 {
			out = append(out, mask|byte(n))
		} else {
			out = append(out, mask|126)
			out = binary.BigEndian.AppendUint16(out, uint16(n))
		}
		if masked {
			out = append(out, 0, 0, 0, 0)
		}
		out = append(out, c.Bytes(at, at+n)...)
		at += n
	}
	return out
}

// readFrames reads messages into check until a Close frame (nil) or the end.
func readFrames(r *bufio.Reader, check *Checker) error {
	for {
		var b [14]byte
		if _, err := io.ReadFull(r, b[:2]); err != nil {
			return err
		}
		n := int64(b[1] & 0x7f)
		more := 0
		if n == 126 {
			more = 2
		}
		if b[1]&0x80 != 0 {
			more += 4
		}
		if _, err := io.ReadFull(r, b[2:2+more]); err != nil {
			return err
		}
		if n == 126 {
			n = int64(binary.BigEndian.Uint16(b[2:]))
		}
		switch b[0] {
		case 0x88:
			_, err := io.CopyN(io.Discard, r, n)
			return err
		case 0x82:
			if _, err := io.CopyN(check, r, n); err != nil {
				return err
			}
		default:
			return errFrame
		}
	}
}
