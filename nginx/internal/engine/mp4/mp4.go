// Package mp4 cuts a part out of a file of MP4 (ISO/IEC 14496-12): a new header of movie, tracks and samples for a part of the
// file's media data, as nginx's module makes it. What nothing of that depends on is left out.
package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Options are the options of Cut.
type Options struct {
	// Start is where the part begins, and Length how long it is, in milliseconds. 0 as Length is up to the end.
	Start, Length uint64
	// KeyFrame has a track begin with the key frame in front of Start, and players skip to Start.
	KeyFrame bool
	// MaxMovie bounds the box moov, in bytes, which is held in memory a few times.
	MaxMovie int64
}

// Part is a part of a file: Header, and then the file's bytes from From up to but not including To.
type Part struct {
	Header   []byte
	From, To int64
}

// Size returns the part's length.
func (p *Part) Size() int64 { return int64(len(p.Header)) + p.To - p.From }

// ErrWhole is the error of a file that is sent as it is: the part is the whole, and players can begin with it.
var ErrWhole = errors.New("the whole file is requested")

// maxTime bounds times, in milliseconds, so that they can be multiplied with a time scale.
const maxTime = 1 << 31

// Cut returns the part of a file of a size. An error other than ErrWhole and those of r is one of the file.
func Cut(r io.ReaderAt, size int64, o Options) (*Part, error) {
	o.Start, o.Length = min(o.Start, maxTime), min(o.Length, maxTime)
	f := &file{r: r, size: size, o: o}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f.part()
}

// file is a file that is read.
type file struct {
	r    io.ReaderAt
	size int64
	o    Options

	ftyp, mvhd []byte // whole boxes, nil if there is none
	scale      uint32 // of the movie's times: units per second
	tracks     []*track
	media      box // mdat
	hasMedia   bool
	hasMovie   bool
}

// box is the place of a box's content in a file.
type box struct {
	name       string
	start, end int64
}

// read reads the boxes of the file.
func (f *file) read() error {
	for at := int64(0); at < f.size && !(f.hasMovie && f.hasMedia); {
		b, err := f.box(at)
		switch {
		case err != nil:
			return err
		case b == nil:
			return nil
		}
		if err := f.take(b); err != nil {
			return err
		}
		at = b.end
	}
	return nil
}

// box reads the header of a box. It returns nil where a zero ends the boxes.
func (f *file) box(at int64) (*box, error) {
	var header [16]byte
	p := header[:min(16, f.size-at)]
	if err := f.readAt(p, at); err != nil {
		return nil, err
	}
	b, size, err := parseHeader(p, uint64(f.size-at))
	if b == nil || err != nil {
		return nil, err
	}
	b.start += at
	b.end = at + int64(size)
	return b, nil
}

var errTruncated = errors.New("the file is truncated")

// parseHeader parses the header of a box at the start of p, which has left bytes behind. It returns nil where a zero ends the
// boxes. b.start is the length of the header.
func parseHeader(p []byte, left uint64) (b *box, size uint64, err error) {
	if len(p) < 8 {
		return nil, 0, errTruncated
	}
	size, header := uint64(binary.BigEndian.Uint32(p)), uint64(8)
	switch {
	case size == 0:
		return nil, 0, nil
	case size == 1 && len(p) < 16:
		return nil, 0, errTruncated
	case size == 1:
		size, header = binary.BigEndian.Uint64(p[8:]), 16
	}
	name := string(p[4:8])
	switch {
	case size < header:
		return nil, 0, fmt.Errorf("box %q is too small: %d", name, size)
	case size > left:
		return nil, 0, fmt.Errorf("box %q is too large: %d", name, size)
	}
	return &box{name: name, start: int64(header)}, size, nil
}

// maxType bounds the box ftyp.
const maxType = 1024

// take takes a box of the file.
func (f *file) take(b *box) (err error) {
	switch b.name {
	case "ftyp":
		if b.end-b.start > maxType {
			return errors.New("box ftyp is too large")
		}
		if f.ftyp != nil {
			return twice(b.name)
		}
		f.ftyp, err = f.content(b)
		f.ftyp = appendBox(nil, "ftyp", f.ftyp)
	case "moov":
		switch {
		case f.hasMovie:
			return twice(b.name)
		case !f.hasMedia && f.o.Start == 0 && f.o.Length == 0:
			return ErrWhole
		case b.end-b.start > f.o.MaxMovie:
			return fmt.Errorf("box moov is too large: %d, you may want to increase mp4_max_buffer_size", b.end-b.start)
		}
		f.hasMovie = true
		var content []byte
		if content, err = f.content(b); err == nil {
			err = f.movie(content)
		}
	case "mdat":
		if f.hasMedia {
			return twice(b.name)
		}
		f.hasMedia, f.media = true, *b
	}
	return err
}

func twice(name string) error { return fmt.Errorf("there are two boxes %q", name) }

// content reads the content of a box.
func (f *file) content(b *box) ([]byte, error) {
	p := make([]byte, b.end-b.start)
	return p, f.readAt(p, b.start)
}

// readAt reads all of p.
func (f *file) readAt(p []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(f.r, at, int64(len(p))), p)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errTruncated
	}
	return err
}

// movie reads the content of moov.
func (f *file) movie(p []byte) error {
	return each(p, func(name string, content []byte) (err error) {
		switch name {
		case "mvhd":
			if f.mvhd != nil {
				return twice(name)
			}
			var h header
			if h, err = parseTimes(content, name); err != nil {
				return err
			}
			f.scale = h.scale
			start := scaled(f.o.Start, h.scale)
			if h.duration < start {
				return errors.New("the start time exceeds the duration of the file")
			}
			f.mvhd = h.withDuration(name, f.shorten(h.duration-start, h.scale))
		case "cmov":
			return errors.New("box moov is compressed")
		case "trak":
			t := &track{file: f}
			switch err := t.read(content); {
			case err == errOver: // the track has ended at the start time
			case err != nil:
				return err
			default:
				f.tracks = append(f.tracks, t)
			}
		}
		return nil
	})
}

// each calls take with each box of p, up to a zero that ends them.
func each(p []byte, take func(name string, content []byte) error) error {
	for len(p) > 0 {
		b, size, err := parseHeader(p, uint64(len(p)))
		switch {
		case err != nil:
			return err
		case b == nil:
			return nil
		}
		if err := take(b.name, p[b.start:size]); err != nil {
			return err
		}
		p = p[size:]
	}
	return nil
}

// scaled converts milliseconds to units of a time scale.
func scaled(ms uint64, scale uint32) uint64 { return ms * uint64(scale) / 1000 }

// shorten bounds a duration, in units of a time scale, by the length of the part.
func (f *file) shorten(duration uint64, scale uint32) uint64 {
	if f.o.Length == 0 {
		return duration
	}
	return min(duration, scaled(f.o.Length, scale))
}

// part makes the part when the file has been read.
func (f *file) part() (*Part, error) {
	switch {
	case len(f.tracks) == 0:
		return nil, errors.New("no box trak was found")
	case !f.hasMedia:
		return nil, errors.New("no box mdat was found")
	}
	from, to := f.size, int64(0)
	for _, t := range f.tracks {
		if err := t.cut(); err != nil {
			return nil, err
		}
		from, to = min(from, t.from), max(to, t.to)
	}
	switch {
	case to <= from:
		return nil, errors.New("there is no data between the start time and the end time")
	case from >= f.media.end:
		return nil, errors.New("the start time is outside of box mdat")
	case to > f.size:
		return nil, errors.New("a chunk is outside of the file")
	}
	movie, err := f.appendMovie(nil, 0)
	if err != nil {
		return nil, err
	}
	media := mediaHeader(to - from)
	moved := int64(len(f.ftyp)+len(movie)+len(media)) - from
	if movie, err = f.appendMovie(f.ftyp[:len(f.ftyp):len(f.ftyp)], moved); err != nil {
		return nil, err
	}
	return &Part{append(movie, media...), from, to}, nil
}

// mediaHeader returns the header of an mdat of a length.
func mediaHeader(length int64) []byte {
	if length <= math.MaxUint32-8 {
		return append(binary.BigEndian.AppendUint32(nil, uint32(length+8)), "mdat"...)
	}
	return binary.BigEndian.AppendUint64([]byte("\x00\x00\x00\x01mdat"), uint64(length+16))
}

// appendMovie appends moov to b. The data of the media are moved by a number of bytes.
func (f *file) appendMovie(b []byte, moved int64) ([]byte, error) {
	start := len(b)
	b = append(append(b, "\x00\x00\x00\x00moov"...), f.mvhd...)
	for _, t := range f.tracks {
		var err error
		if b, err = t.append(b, moved); err != nil {
			return nil, err
		}
	}
	return closeBox(b, start), nil
}

// appendBox appends a box to b.
func appendBox(b []byte, name string, content ...[]byte) []byte {
	start := len(b)
	b = append(append(b, 0, 0, 0, 0), name...)
	for _, c := range content {
		b = append(b, c...)
	}
	return closeBox(b, start)
}

// closeBox sets the size of the box that begins at start and ends b.
func closeBox(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}
