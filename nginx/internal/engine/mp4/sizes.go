package mp4

import (
	"encoding/binary"
	"errors"
)

// sizes is an stsz: the lengths of the samples.
type sizes struct {
	flags   []byte
	uniform uint32 // of all samples; 0: list has them
	count   uint32
	list    []uint32
}

func parseSizes(content []byte) (*sizes, error) {
	if len(content) < 12 {
		return nil, errors.New("box stsz is too small")
	}
	s := &sizes{flags: content[:4], uniform: binary.BigEndian.Uint32(content[4:]), count: binary.BigEndian.Uint32(content[8:])}
	if s.uniform != 0 {
		return s, nil
	}
	t, err := parseEntries(nil, content[8:], "stsz", 1)
	if err == nil {
		s.list = t.entries
	}
	return s, err
}

// cut keeps the samples from first up to but not including last. It returns the length of so many samples in front of first, and of so
// many in front of last.
func (s *sizes) cut(first, last, before, end uint64) (skipped, ended uint64, err error) {
	n := uint64(s.count)
	switch {
	case first >= n:
		return 0, 0, errors.New("the start time is outside of box stsz")
	case last > n || last < first:
		return 0, 0, errors.New("the end time is outside of box stsz")
	case before > first || end > last:
		return 0, 0, errors.New("boxes stsc and stsz contradict each other")
	}
	skipped, ended = s.length(first-before, first), s.length(last-end, last)
	if s.count = uint32(last - first); s.list != nil {
		s.list = s.list[first:last]
	}
	return skipped, ended, nil
}

// length returns the length of the samples from one up to but not including another.
func (s *sizes) length(from, to uint64) (n uint64) {
	if s.uniform != 0 {
		return (to - from) * uint64(s.uniform)
	}
	for _, size := range s.list[from:to] {
		n += uint64(size)
	}
	return n
}

// append appends the box to b.
func (s *sizes) append(b []byte) []byte {
	start := len(b)
	b = append(append(b, "\x00\x00\x00\x00stsz"...), s.flags...)
	b = binary.BigEndian.AppendUint32(b, s.uniform)
	b = binary.BigEndian.AppendUint32(b, s.count)
	for _, size := range s.list {
		b = binary.BigEndian.AppendUint32(b, size)
	}
	return closeBox(b, start)
}
