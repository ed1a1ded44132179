package watchcodec

import (
	"encoding/binary"
	"errors"
	"math"
)

var errProtobuf = errors.New("watchcodec: malformed protobuf")

// The wire types of protobuf. Groups, which Kubernetes never sends, are malformed.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// protoField is one field of a message.
type protoField struct {
	number int
	wire   int
	whole  span // tag and content
	value  span // of wireBytes: the content; else the encoded number
}

// nextField decodes the field at p[i].
func nextField(p []byte, i int) (f protoField, err error) {
	if i+2 < len(p) && p[i]&0x87 == wireBytes && p[i] > 7 { // most fields have a tag of one byte and a length of one or two
		n, at := int(p[i+1]), i+2
		if n >= 0x80 {
			n, at = n&0x7f|int(p[at])<<7, at+1
		}
		if n < 1<<14 && n <= len(p)-at {
			return protoField{int(p[i] >> 3), wireBytes, span{i, at + n}, span{at, at + n}}, nil
		}
	}
	return nextFieldOfAny(p, i)
}

func nextFieldOfAny(p []byte, i int) (f protoField, err error) {
	tag, n := binary.Uvarint(p[i:])
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return protoField{}, errProtobuf
	}
	f = protoField{number: int(tag >> 3), wire: int(tag & 7)}
	at := i + n
	size := 0
	switch f.wire {
	case wireVarint:
		if _, size = binary.Uvarint(p[at:]); size <= 0 {
			return f, errProtobuf
		}
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	case wireBytes:
		length, n := binary.Uvarint(p[at:])
		if n <= 0 || length > uint64(len(p)-at-n) {
			return f, errProtobuf
		}
		at += n
		size = int(length)
	default:
		return f, errProtobuf
	}
	if size > len(p)-at {
		return f, errProtobuf
	}
	f.value = span{at, at + size}
	f.whole = span{i, at + size}
	return f, nil
}

// fieldPrefix decodes the tag and the length of the field that p begins with, of which the rest may
// not be received yet: its content is size bytes after p[at]. at is 0 if more bytes are needed for
// that.
func fieldPrefix(p []byte) (number, at, size int, err error) {
	tag, n := binary.Uvarint(p)
	length, m := uint64(0), 0
	if n > 0 {
		length, m = binary.Uvarint(p[n:])
	}
	switch wire := int(tag & 7); {
	case n < 0 || m < 0 || n > 0 && (tag>>3 == 0 || tag>>3 > 1<<29-1):
		return 0, 0, 0, errProtobuf
	case n > 0 && wire == wireFixed64:
		return int(tag >> 3), n, 8, nil
	case n > 0 && wire == wireFixed32:
		return int(tag >> 3), n, 4, nil
	case n > 0 && wire != wireVarint && wire != wireBytes:
		return 0, 0, 0, errProtobuf
	case m == 0:
		return 0, 0, 0, nil
	case wire == wireVarint:
		return int(tag >> 3), n, m, nil
	case length > math.MaxInt32:
		return 0, 0, 0, errTooLarge
	}
	return int(tag >> 3), n + m, int(length), nil
}

// shortField returns the end of the field at p[i] if the field is of bytes and its tag and its
// length have one byte each, as most fields do. Its content begins at i+2 then. shortField returns
// 0 for other fields.
func shortField(p []byte, i int) (end int) {
	if i+1 < len(p) && p[i]&0x87 == wireBytes && p[i+1] < 0x80 {
		if end = i + 2 + int(p[i+1]); end <= len(p) && p[i] > 7 {
			return end
		}
	}
	return 0
}

// lastField returns the content of the last field of a message with the number. It stops at a
// malformed field.
func lastField(p []byte, number int) (content []byte, ok bool) {
	for i := 0; i < len(p); {
		if end := shortField(p, i); end > 0 {
			if int(p[i]>>3) == number {
				content, ok = p[i+2:end], true
			}
			i = end
			continue
		}
		f, err := nextField(p, i)
		if err != nil {
			break
		}
		if f.number == number {
			content, ok = f.value.of(p), true
		}
		i = f.whole.end
	}
	return content, ok
}

// appendBytesField appends a field of bytes.
func appendBytesField(b []byte, number int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireBytes)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// uvarintLen returns the encoded size of a number.
func uvarintLen(n uint64) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}

// appendNested appends a field of bytes with the content that content appends, and with a length in
// as few bytes as gogo's generated code needs. guess is the expected size of the content.
func appendNested(b []byte, number, guess int, content func(b []byte) ([]byte, error)) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(number)<<3|wireBytes)
	at := len(b)
	reserved := uvarintLen(uint64(guess))
	var zeros [binary.MaxVarintLen64]byte
	b, err := content(append(b, zeros[:reserved]...))
	if err != nil {
		return b, err
	}
	length := len(b) - at - reserved
	if need := uvarintLen(uint64(length)); need != reserved {
		if need > reserved {
			b = append(b, zeros[:need-reserved]...)
		}
		copy(b[at+need:], b[at+reserved:at+reserved+length])
		b = b[:at+need+length]
	}
	binary.PutUvarint(b[at:], uint64(length))
	return b, nil
}
