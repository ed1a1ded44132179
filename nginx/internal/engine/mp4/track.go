package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// track is a trak: which bytes of the media data are samples of it, and when they are shown.
type track struct {
	file       *file
	tkhd       header
	mdhd       header
	hdlr, vmhd []byte // whole boxes, nil if there is none, as those that follow
	smhd, dinf []byte
	stsd       []byte
	times      *table // stts: number of samples, duration of each
	keys       *table // stss: numbers of samples, from 1 on; nil: all are key frames
	offsets    *table // ctts: number of samples, offset of each; nil: none
	chunks     *table // stsc: the first chunk, from 1 on, samples in a chunk, an index of stsd
	sizes      *sizes
	places     []uint64 // stco, co64: of the chunks in the file
	placeFlags []byte
	wide       bool // it is co64

	// What cut has found out.
	movieDuration, duration uint64 // of tkhd, of mdhd
	prefix                  uint64 // the time between the key frame and the start, in units of mdhd
	first, last             uint64 // samples, from 0 on; last is behind the part
	firstChunk, lastChunk   uint64 // from 0 on; lastChunk is behind the part
	skipped, ended          uint64 // samples of the first chunk in front of the part, and of the last chunk that are in it
	from, to                int64  // in the file
}

// read reads the content of a trak.
func (t *track) read(p []byte) error {
	err := each(p, func(name string, content []byte) (err error) {
		switch name {
		case "tkhd":
			if t.tkhd, err = once(t.tkhd, content, name); err == nil {
				t.movieDuration, err = t.remaining(t.tkhd.duration, t.file.scale)
			}
		case "mdia":
			err = each(content, t.readMedia)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case t.times == nil, t.chunks == nil, t.placeFlags == nil, t.sizes == nil, t.mdhd.content == nil:
		return errors.New("a box trak lacks mdhd, stts, stsc, stsz or stco")
	case t.chunks.len() == 0:
		return errors.New("box stsc has no entries")
	}
	return nil
}

// once parses a box of times that may be there once.
func once(have header, content []byte, name string) (header, error) {
	if have.content != nil {
		return have, twice(name)
	}
	return parseTimes(content, name)
}

// remaining returns what the part leaves of a duration.
func (t *track) remaining(duration uint64, scale uint32) (uint64, error) {
	start := scaled(t.file.o.Start, scale)
	if duration <= start {
		return 0, errOver
	}
	return t.file.shorten(duration-start, scale), nil
}

// readMedia reads a box of mdia. Each box is read where it belongs alone, so that no file can exceed the depth.
func (t *track) readMedia(name string, content []byte) (err error) {
	switch name {
	case "mdhd":
		if t.mdhd, err = once(t.mdhd, content, name); err == nil {
			t.duration, err = t.remaining(t.mdhd.duration, t.mdhd.scale)
		}
		return err
	case "hdlr":
		return keepBox(&t.hdlr, name, content)
	case "minf":
		return each(content, t.readInformation)
	}
	return nil
}

// readInformation reads a box of minf.
func (t *track) readInformation(name string, content []byte) error {
	switch name {
	case "vmhd":
		return keepBox(&t.vmhd, name, content)
	case "smhd":
		return keepBox(&t.smhd, name, content)
	case "dinf":
		return keepBox(&t.dinf, name, content)
	case "stbl":
		return each(content, t.readSamples)
	}
	return nil
}

// readSamples reads a box of stbl.
func (t *track) readSamples(name string, content []byte) (err error) {
	switch name {
	case "stsd":
		return keepBox(&t.stsd, name, content)
	case "stts":
		return readTable(&t.times, name, content, 2)
	case "stss":
		return readTable(&t.keys, name, content, 1)
	case "ctts":
		return readTable(&t.offsets, name, content, 2)
	case "stsc":
		return readTable(&t.chunks, name, content, 3)
	case "stsz":
		if t.sizes != nil {
			return twice(name)
		}
		t.sizes, err = parseSizes(content)
		return err
	case "stco", "co64":
		return t.readPlaces(content, name)
	}
	return nil
}

// keepBox keeps a box as it is that may be there once.
func keepBox(to *[]byte, name string, content []byte) error {
	if *to != nil {
		return twice(name)
	}
	*to = appendBox(nil, name, content)
	return nil
}

// readTable reads a table that may be there once.
func readTable(to **table, name string, content []byte, width int) (err error) {
	if *to != nil {
		return twice(name)
	}
	*to, err = parseTable(content, name, width)
	return err
}

// readPlaces reads the places of the chunks.
func (t *track) readPlaces(content []byte, name string) error {
	if t.placeFlags != nil {
		return twice(name)
	}
	t.wide = name == "co64"
	width := 1
	if t.wide {
		width = 2
	}
	list, err := parseTable(content, name, width)
	if err != nil {
		return err
	}
	t.placeFlags, t.places = list.flags, make([]uint64, list.len())
	for i := range t.places {
		for j := range width {
			t.places[i] = t.places[i]<<32 | uint64(*list.at(i, j))
		}
	}
	return nil
}

// cut cuts the part out of the track's tables.
func (t *track) cut() error {
	for _, step := range []func() error{t.cutTimes, t.cutKeys, t.cutOffsets, t.cutChunks, t.cutPlaces} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sample finds the sample that is shown at a time, in units of mdhd: the entry of stts, how many samples of that come before it, and
// how many of all.
func (t *track) sample(time uint64) (entry int, inEntry, samples uint64, ok bool) {
	for entry = range t.times.len() {
		count, duration := uint64(*t.times.at(entry, 0)), uint64(*t.times.at(entry, 1))
		if time < count*duration {
			return entry, time / duration, samples + time/duration, true
		}
		samples += count
		time -= count * duration
	}
	return 0, 0, samples, false
}

// cutTimes cuts stts, and finds the part's samples.
func (t *track) cutTimes() error {
	entry, inEntry, first, ok := t.sample(scaled(t.file.o.Start, t.mdhd.scale))
	if !ok {
		return errors.New("the start time is outside of box stts")
	}
	back, err := t.sinceKey(first)
	if err != nil {
		return err
	}
	t.first = first - back
	for inEntry < back {
		t.prefix += inEntry * uint64(*t.times.at(entry, 1))
		back -= inEntry
		if entry--; entry < 0 {
			return errors.New("the key frame is outside of box stts")
		}
		inEntry = uint64(*t.times.at(entry, 0))
	}
	t.prefix += back * uint64(*t.times.at(entry, 1))
	t.duration += t.prefix
	*t.times.at(entry, 0) -= uint32(inEntry - back)
	t.times.keep(entry, t.times.len())
	if t.file.o.Length == 0 {
		return nil
	}
	entry, inEntry, samples, ok := t.sample(scaled(t.file.o.Length, t.mdhd.scale) + t.prefix)
	if t.last = t.first + samples; ok {
		*t.times.at(entry, 0) = uint32(inEntry)
		t.times.keep(0, entry+1)
	}
	return nil
}

// sinceKey returns how many samples lie between a sample and the key frame in front of it, 0 without Options.KeyFrame.
func (t *track) sinceKey(sample uint64) (n uint64, err error) {
	if !t.file.o.KeyFrame || t.keys == nil {
		return 0, nil
	}
	for _, key := range t.keys.entries {
		switch {
		case key == 0:
			return 0, errors.New("box stss has a zero")
		case uint64(key) > sample+1:
			return n, nil
		}
		n = sample + 1 - uint64(key)
	}
	return n, nil
}

// cutKeys cuts stss.
func (t *track) cutKeys() error {
	if t.keys == nil {
		return nil
	}
	from, to := 0, t.keys.len()
	for from < to && uint64(*t.keys.at(from, 0)) < t.first+1 {
		from++
	}
	if t.file.o.Length > 0 {
		for i := from; i < to; i++ {
			if uint64(*t.keys.at(i, 0)) >= t.last+1 {
				to = i
			}
		}
	}
	t.keys.keep(from, to)
	for i := range t.keys.entries {
		t.keys.entries[i] -= uint32(t.first)
	}
	return nil
}

// cutOffsets cuts ctts.
func (t *track) cutOffsets() error {
	if t.offsets == nil {
		return nil
	}
	entry, inEntry, ok := t.offsetOf(t.first)
	if !ok {
		t.offsets = nil
		return nil
	}
	*t.offsets.at(entry, 0) -= uint32(inEntry)
	t.offsets.keep(entry, t.offsets.len())
	if t.file.o.Length == 0 {
		return nil
	}
	if entry, inEntry, ok = t.offsetOf(t.last - t.first); ok {
		*t.offsets.at(entry, 0) = uint32(inEntry)
		t.offsets.keep(0, entry+1)
	}
	return nil
}

// offsetOf returns the entry of ctts that a sample is in, and how many samples of that come before it.
func (t *track) offsetOf(sample uint64) (entry int, inEntry uint64, ok bool) {
	for entry = range t.offsets.len() {
		count := uint64(*t.offsets.at(entry, 0))
		if sample < count {
			return entry, sample, true
		}
		sample -= count
	}
	return 0, 0, false
}

// cutPlaces cuts stsz and the places of the chunks, and finds the part's data.
func (t *track) cutPlaces() error {
	last := t.last
	if t.file.o.Length == 0 {
		last = uint64(t.sizes.count)
	}
	skipped, ended, err := t.sizes.cut(t.first, last, t.skipped, t.ended)
	if err != nil {
		return err
	}
	lastChunk := t.lastChunk
	if t.file.o.Length == 0 {
		lastChunk = uint64(len(t.places))
	}
	switch {
	case t.firstChunk >= uint64(len(t.places)):
		return errors.New("the start time is outside of the chunks")
	case lastChunk > uint64(len(t.places)) || lastChunk < t.firstChunk:
		return errors.New("the end time is outside of the chunks")
	}
	t.places = t.places[t.firstChunk:lastChunk]
	if last == t.first {
		t.places, t.chunks.entries = nil, nil
	}
	if len(t.places) == 0 {
		t.from = t.file.size
		return nil
	}
	if t.from, err = t.place(t.places[0], skipped); err != nil {
		return err
	}
	t.places[0] = uint64(t.from)
	t.to = t.file.media.end
	if t.file.o.Length > 0 {
		if t.to, err = t.place(t.places[len(t.places)-1], ended); err != nil {
			return err
		}
	}
	return nil
}

// place returns the place of what stands so many bytes behind the start of a chunk.
func (t *track) place(chunk, behind uint64) (int64, error) {
	limit := uint64(t.file.size)
	if !t.wide {
		limit = min(limit, math.MaxUint32)
	}
	if chunk > limit || behind > limit-chunk {
		return 0, errors.New("a chunk is outside of the file")
	}
	return int64(chunk + behind), nil
}

// append appends the trak to b. The data of the media are moved by a number of bytes.
func (t *track) append(b []byte, moved int64) ([]byte, error) {
	trak := len(b)
	b = append(b, "\x00\x00\x00\x00trak"...)
	if t.tkhd.content != nil {
		b = append(b, t.tkhd.withDuration("tkhd", t.movieDuration)...)
	}
	b = t.appendEdits(b)
	mdia := len(b)
	b = append(b, "\x00\x00\x00\x00mdia"...)
	b = append(append(b, t.mdhd.withDuration("mdhd", t.duration)...), t.hdlr...)
	minf := len(b)
	b = append(b, "\x00\x00\x00\x00minf"...)
	b = append(append(append(b, t.vmhd...), t.smhd...), t.dinf...)
	b, err := t.appendSamples(b, moved)
	return closeBox(closeBox(closeBox(b, minf), mdia), trak), err
}

// appendEdits appends an edit that has players skip what stands in front of the start.
func (t *track) appendEdits(b []byte) []byte {
	if t.prefix == 0 {
		return b
	}
	elst := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, 1)
	elst = binary.BigEndian.AppendUint64(elst, t.movieDuration)
	elst = binary.BigEndian.AppendUint64(elst, t.prefix)
	return appendBox(b, "edts", appendBox(nil, "elst", elst, []byte{0, 1, 0, 0}))
}

// appendSamples appends the stbl to b.
func (t *track) appendSamples(b []byte, moved int64) ([]byte, error) {
	stbl := len(b)
	b = append(append(b, "\x00\x00\x00\x00stbl"...), t.stsd...)
	b = t.times.append(b, "stts")
	if t.keys != nil {
		b = t.keys.append(b, "stss")
	}
	if t.offsets != nil {
		b = t.offsets.append(b, "ctts")
	}
	b = t.chunks.append(b, "stsc")
	b = t.sizes.append(b)
	places := len(b)
	b = append(append(b, "\x00\x00\x00\x00stco"...), t.placeFlags...)
	if t.wide {
		copy(b[places+4:], "co64")
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(t.places)))
	for _, place := range t.places {
		at := int64(place) + moved
		switch {
		case at < 0 || !t.wide && at > math.MaxUint32:
			return nil, fmt.Errorf("a chunk would be at %d", at)
		case t.wide:
			b = binary.BigEndian.AppendUint64(b, uint64(at))
		default:
			b = binary.BigEndian.AppendUint32(b, uint32(at))
		}
	}
	return closeBox(closeBox(b, places), stbl), nil
}
