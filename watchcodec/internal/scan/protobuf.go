package scan

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrProtobuf is the error of a message that is not protobuf as Kubernetes sends it.
var ErrProtobuf = errors.New("watchcodec: malformed protobuf")

var errFieldTooLarge = errors.New("watchcodec: a field of 2 GiB or more")

// WireBytes is the wire type of strings, bytes and messages.
const WireBytes = 2

// The other wire types. Groups, which Kubernetes never sends, are malformed.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireFixed32 = 5
)

// ProtobufField is one field of a message.
type ProtobufField struct {
	Number int
	Wire   int
	Whole  Span // tag and content
	Value  Span // of WireBytes: the content; else the encoded number
}

// NextField decodes the field at p[i].
func NextField(p []byte, i int) (f ProtobufField, err error) {
	if i+2 < len(p) && p[i]&0x87 == WireBytes && p[i] > 7 { // most fields have a tag of one byte and a length of one or two
		n, at := int(p[i+1]), i+2
		if n >= 0x80 {
			n, at = n&0x7f|int(p[at])<<7, at+1
		}
		if n < 1<<14 && n <= len(p)-at {
			return ProtobufField{int(p[i] >> 3), WireBytes, Span{i, at + n}, Span{at, at + n}}, nil
		}
	}
	return nextFieldOfAny(p, i)
}

func nextFieldOfAny(p []byte, i int) (f ProtobufField, err error) {
	tag, n := binary.Uvarint(p[i:])
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return ProtobufField{}, ErrProtobuf
	}
	f = ProtobufField{Number: int(tag >> 3), Wire: int(tag & 7)}
	at := i + n
	size := 0
	switch f.Wire {
	case wireVarint:
		if _, size = binary.Uvarint(p[at:]); size <= 0 {
			return f, ErrProtobuf
		}
	case wireFixed64:
		size = 8
	case wireFixed32:
		size = 4
	case WireBytes:
		length, n := binary.Uvarint(p[at:])
		if n <= 0 || length > uint64(len(p)-at-n) {
			return f, ErrProtobuf
		}
		at += n
		size = int(length)
	default:
		return f, ErrProtobuf
	}
	if size > len(p)-at {
		return f, ErrProtobuf
	}
	f.Value = Span{at, at + size}
	f.Whole = Span{i, at + size}
	return f, nil
}

// FieldPrefix decodes the tag and the length of the field that p begins with, of which the rest may
// not be received yet: its content is size bytes after p[at]. at is 0 if more bytes are needed for
// that.
func FieldPrefix(p []byte) (number, at, size int, err error) {
	tag, n := binary.Uvarint(p)
	length, m := uint64(0), 0
	if n > 0 {
		length, m = binary.Uvarint(p[n:])
	}
	switch wire := int(tag & 7); {
	case n < 0 || m < 0 || n > 0 && (tag>>3 == 0 || tag>>3 > 1<<29-1):
		return 0, 0, 0, ErrProtobuf
	case n > 0 && wire == wireFixed64:
		return int(tag >> 3), n, 8, nil
	case n > 0 && wire == wireFixed32:
		return int(tag >> 3), n, 4, nil
	case n > 0 && wire != wireVarint && wire != WireBytes:
		return 0, 0, 0, ErrProtobuf
	case m == 0:
		return 0, 0, 0, nil
	case wire == wireVarint:
		return int(tag >> 3), n, m, nil
	case length > math.MaxInt32:
		return 0, 0, 0, errFieldTooLarge
	}
	return int(tag >> 3), n + m, int(length), nil
}

// ShortField returns the end of the field at p[i] if the field is of bytes and its tag and its
// length have one byte each, as most fields do. Its content begins at i+2 then. ShortField returns
// 0 for other fields.
func ShortField(p []byte, i int) (end int) {
	if i+1 < len(p) && p[i]&0x87 == WireBytes && p[i+1] < 0x80 {
		if end = i + 2 + int(p[i+1]); end <= len(p) && p[i] > 7 {
			return end
		}
	}
	return 0
}

// LastField returns the content of the last field of a message with the number. It stops at a
// malformed field.
func LastField(p []byte, number int) (content []byte, ok bool) {
	for i := 0; i < len(p); {
		if end := ShortField(p, i); end > 0 {
			if int(p[i]>>3) == number {
				content, ok = p[i+2:end], true
			}
			i = end
			continue
		}
		f, err := NextField(p, i)
		if err != nil {
			break
		}
		if f.Number == number {
			content, ok = f.Value.Of(p), true
		}
		i = f.Whole.End
	}
	return content, ok
}

// AppendBytesField appends a field of bytes.
func AppendBytesField(b []byte, number int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|WireBytes)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// UvarintLen returns the encoded size of a number.
func UvarintLen(n uint64) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}

// AppendNested appends a field of bytes with the content that content appends, and with a length in
// as few bytes as gogo's generated code needs. guess is the expected size of the content.
func AppendNested(b []byte, number, guess int, content func(b []byte) ([]byte, error)) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(number)<<3|WireBytes)
	at := len(b)
	reserved := UvarintLen(uint64(guess))
	var zeros [binary.MaxVarintLen64]byte
	b, err := content(append(b, zeros[:reserved]...))
	if err != nil {
		return b, err
	}
	length := len(b) - at - reserved
	if need := UvarintLen(uint64(length)); need != reserved {
		if need > reserved {
			b = append(b, zeros[:need-reserved]...)
		}
		copy(b[at+need:], b[at+reserved:at+reserved+length])
		b = b[:at+need+length]
	}
	binary.PutUvarint(b[at:], uint64(length))
	return b, nil
}
