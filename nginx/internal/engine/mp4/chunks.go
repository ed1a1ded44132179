package mp4

import "errors"

// run is an entry of stsc in use: chunks with equally many samples.
type run struct {
	chunk, samples, id uint32
}

func (t *track) run(entry int) run {
	return run{*t.chunks.at(entry, 0), *t.chunks.at(entry, 1), *t.chunks.at(entry, 2)}
}

// cutChunks cuts stsc, and finds the part's chunks. The first chunk and the last one may be in it in part only: they are
// entries of their own then.
func (t *track) cutChunks() error {
	first, err := t.cutChunksBefore()
	if err != nil {
		return err
	}
	var last []uint32
	if t.file.o.Length > 0 {
		if last, err = t.cutChunksBehind(first); err != nil {
			return err
		}
	}
	for i := range t.chunks.len() {
		*t.chunks.at(i, 0) -= uint32(t.firstChunk)
	}
	t.chunks.entries = append(append(first, t.chunks.entries...), last...)
	return nil
}

// found is where a sample is.
type found struct {
	entry   int // of stsc
	run     run
	next    uint32 // the first chunk behind the run
	before  uint32 // samples in a chunk of the run before, 0 if there is none
	samples uint64 // in the run in front of the sample
}

// chunkOf finds the chunk of a sample.
func (t *track) chunkOf(sample uint64, what string) (f found, err error) {
	for f.run = t.run(0); f.entry+1 < t.chunks.len(); f.entry++ {
		following := t.run(f.entry + 1)
		if f.next = following.chunk; f.next < f.run.chunk {
			return f, errUnordered
		}
		n := uint64(f.next-f.run.chunk) * uint64(f.run.samples)
		if sample < n {
			f.samples = sample
			return f, f.check()
		}
		if sample -= n; f.next > f.run.chunk {
			f.before = f.run.samples
		}
		f.run = following
	}
	f.next = uint32(len(t.places)) + 1
	switch {
	case f.next < f.run.chunk:
		return f, errUnordered
	case sample > uint64(f.next-f.run.chunk)*uint64(f.run.samples):
		return f, errors.New("the " + what + " time is outside of the chunks")
	}
	f.samples = sample
	return f, f.check()
}

var errUnordered = errors.New("the chunks in box stsc are not in order")

func (f *found) check() error {
	if f.run.samples == 0 || f.run.chunk == 0 {
		return errors.New("box stsc has a zero")
	}
	return nil
}

// cutChunksBefore cuts what stands in front of the part. It returns an entry for a first chunk that is in it in part only, and more
// chunks behind it like it were.
func (t *track) cutChunksBefore() (first []uint32, err error) {
	f, err := t.chunkOf(t.first, "start")
	if err != nil {
		return nil, err
	}
	t.firstChunk = uint64(f.run.chunk) - 1 + f.samples/uint64(f.run.samples)
	t.skipped = f.samples % uint64(f.run.samples)
	t.chunks.keep(f.entry, t.chunks.len())
	*t.chunks.at(0, 0) = uint32(t.firstChunk) + 1
	rest := f.run.samples - uint32(t.skipped)
	switch {
	case t.skipped == 0:
		return nil, nil
	case uint64(f.next) == t.firstChunk+2: // it is the run's last
		*t.chunks.at(0, 1) = rest
		return nil, nil
	}
	*t.chunks.at(0, 0)++
	return []uint32{1, rest, f.run.id}, nil
}

// cutChunksBehind cuts what stands behind the part; first is the entry of cutChunksBefore. It returns an entry for a last chunk that is
// in the part in part only.
func (t *track) cutChunksBehind(first []uint32) (last []uint32, err error) {
	sample := t.last - t.first
	if first != nil {
		if uint64(first[1]) > sample {
			first[1] = uint32(sample)
		}
		sample -= uint64(first[1])
	}
	f, err := t.chunkOf(sample, "end")
	if err != nil {
		return nil, err
	}
	target := uint64(f.run.chunk) - 1 + f.samples/uint64(f.run.samples)
	inChunk := f.samples % uint64(f.run.samples)
	if f.samples > 0 {
		t.chunks.keep(0, f.entry+1)
		t.ended = uint64(f.run.samples)
	} else {
		t.chunks.keep(0, f.entry)
		t.ended = uint64(f.before)
	}
	if t.lastChunk = target; inChunk == 0 {
		if f.samples == 0 && f.entry == 0 && first != nil { // the part ends in its first chunk
			t.ended = uint64(first[1])
		}
		return nil, nil
	}
	t.lastChunk, t.ended = target+1, inChunk
	if target == uint64(f.run.chunk)-1 { // it is the run's first
		*t.chunks.at(f.entry, 1) = uint32(inChunk)
		return nil, nil
	}
	return []uint32{uint32(t.lastChunk - t.firstChunk), uint32(inChunk), f.run.id}, nil
}
