package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// header is the content of an mvhd, tkhd or mdhd: times of the movie, of a track in it, or of its media.
type header struct {
	content  []byte
	scale    uint32 // units per second; 0 in a tkhd
	duration uint64
	at       int // where the duration stands
	wide     bool
}

// parseTimes parses the content of the box with a name.
func parseTimes(content []byte, name string) (h header, err error) {
	small := fmt.Errorf("box %q is too small", name)
	if len(content) == 0 {
		return h, small
	}
	h.content, h.wide = content, content[0] != 0
	// version and flags, times of creation and change, then the scale or the track's number and a reserved field
	scaleAt, width := 12, 4
	if h.wide {
		scaleAt, width = 20, 8
	}
	h.at = scaleAt + 4
	if name == "tkhd" {
		h.at += 4
	}
	if len(content) < h.at+width {
		return h, small
	}
	if name != "tkhd" {
		h.scale = binary.BigEndian.Uint32(content[scaleAt:])
	}
	h.duration = uint64(binary.BigEndian.Uint32(content[h.at:]))
	if h.wide {
		h.duration = binary.BigEndian.Uint64(content[h.at:])
	}
	return h, nil
}

// withDuration returns the box with another duration.
func (h header) withDuration(name string, duration uint64) []byte {
	content := slices.Clone(h.content)
	if h.wide {
		binary.BigEndian.PutUint64(content[h.at:], duration)
	} else {
		binary.BigEndian.PutUint32(content[h.at:], uint32(duration))
	}
	return appendBox(nil, name, content)
}

// table is the content of a box with entries of equal size: version and flags, the number of entries, the entries.
type table struct {
	flags   []byte // version and flags
	entries []uint32
	width   int // of an entry, in numbers
}

// parseTable parses a box with entries of so many numbers of 32 bits each.
func parseTable(content []byte, name string, width int) (*table, error) {
	if len(content) < 8 {
		return nil, fmt.Errorf("box %q is too small", name)
	}
	return parseEntries(content[:4], content[4:], name, width)
}

// parseEntries parses the number of the entries, and the entries.
func parseEntries(flags, p []byte, name string, width int) (*table, error) {
	n := uint64(binary.BigEndian.Uint32(p)) * uint64(width)
	if p = p[4:]; n*4 > uint64(len(p)) {
		return nil, fmt.Errorf("box %q is too small", name)
	}
	t := &table{flags: flags, entries: make([]uint32, n), width: width}
	for i := range t.entries {
		t.entries[i] = binary.BigEndian.Uint32(p[4*i:])
	}
	return t, nil
}

// len returns the number of entries.
func (t *table) len() int { return len(t.entries) / t.width }

// at returns the number with an index in an entry, which may be changed.
func (t *table) at(entry, index int) *uint32 { return &t.entries[entry*t.width+index] }

// keep keeps the entries from one up to but not including another.
func (t *table) keep(from, to int) { t.entries = t.entries[from*t.width : to*t.width] }

// append appends the box to b.
func (t *table) append(b []byte, name string) []byte {
	start := len(b)
	b = append(append(append(b, 0, 0, 0, 0), name...), t.flags...)
	b = binary.BigEndian.AppendUint32(b, uint32(t.len()))
	for _, n := range t.entries {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return closeBox(b, start)
}

// errOver is the error of a track that has ended at the start time.
var errOver = errors.New("the track has ended")
