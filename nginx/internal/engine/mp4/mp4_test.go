package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/mp4"
)

// movie is a file that tests make. Each sample is a text that names it, so that the samples of a part can be recognised.
type movie struct {
	mediaFirst bool // mdat stands in front of moov
	wide       bool // co64, and times of 64 bits
	tracks     []movieTrack
}

type movieTrack struct {
	scale   uint32
	times   [][2]uint32 // stts
	keys    []uint32    // stss
	offsets [][2]uint32 // ctts
	chunks  [][3]uint32 // stsc
	uniform bool
}

func (t movieTrack) samples() (n int) {
	for _, e := range t.times {
		n += int(e[0])
	}
	return n
}

func (t movieTrack) duration() (d uint64) {
	for _, e := range t.times {
		d += uint64(e[0]) * uint64(e[1])
	}
	return d
}

// inChunk returns the number of samples in a chunk, from 1 on.
func (t movieTrack) inChunk(chunk int) (n int) {
	for _, e := range t.chunks {
		if int(e[0]) <= chunk {
			n = int(e[1])
		}
	}
	return n
}

func sample(track, n int, uniform bool) string {
	text := fmt.Sprintf("<%d:%d", track, n)
	if uniform {
		return fmt.Sprintf("%-9s>", text)
	}
	return text + strings.Repeat(".", n%7) + ">"
}

func atom(name string, content ...any) []byte {
	var b bytes.Buffer
	b.WriteString("\x00\x00\x00\x00" + name)
	for _, c := range content {
		if text, ok := c.(string); ok {
			c = []byte(text)
		}
		if err := binary.Write(&b, binary.BigEndian, c); err != nil {
			panic(err)
		}
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()))
	return b.Bytes()
}

// times returns an mvhd, a tkhd or an mdhd.
func times(name string, wide bool, scale uint32, duration uint64) []byte {
	middle, rest := []any{scale}, strings.Repeat("r", map[string]int{"mvhd": 80, "tkhd": 60, "mdhd": 4}[name])
	if name == "tkhd" {
		middle = []any{uint32(1), uint32(0)}
	}
	if wide {
		return atom(name, append(append([]any{uint32(1 << 24), uint64(1), uint64(2)}, middle...), duration, rest)...)
	}
	return atom(name, append(append([]any{uint32(0), uint32(1), uint32(2)}, middle...), uint32(duration), rest)...)
}

// bytes returns the file.
func (m movie) bytes() []byte {
	var media []byte
	places, sizes, next := make([][]uint64, len(m.tracks)), make([][]uint32, len(m.tracks)), make([]int, len(m.tracks))
	for chunk, more := 1, true; more; chunk++ { // the chunks of the tracks alternate
		more = false
		for i, t := range m.tracks {
			if next[i] == t.samples() {
				continue
			}
			more = true
			places[i] = append(places[i], uint64(len(media)))
			for n := 0; n < t.inChunk(chunk) && next[i] < t.samples(); n++ {
				s := sample(i, next[i], t.uniform)
				media, sizes[i] = append(media, s...), append(sizes[i], uint32(len(s)))
				next[i]++
			}
		}
	}
	ftyp, mdat := atom("ftyp", "isom"), atom("mdat", media)
	moov := func(base int) []byte {
		content := []any{times("mvhd", m.wide, 1000, m.duration()), atom("udta", "is left out")}
		for i, t := range m.tracks {
			content = append(content, t.bytes(m.wide, places[i], sizes[i], base))
		}
		return atom("moov", content...)
	}
	if m.mediaFirst {
		return slices.Concat(ftyp, mdat, moov(len(ftyp)+8))
	}
	return slices.Concat(ftyp, atom("free", "x"), moov(len(ftyp)+9+len(moov(0))+8), mdat)
}

func (m movie) duration() (ms uint64) {
	for _, t := range m.tracks {
		ms = max(ms, t.duration()*1000/uint64(t.scale))
	}
	return ms
}

func (t movieTrack) bytes(wide bool, places []uint64, sizes []uint32, base int) []byte {
	tables := []any{atom("stsd", "descriptions of samples"), atom("stts", uint32(0), uint32(len(t.times)), t.times)}
	if t.keys != nil {
		tables = append(tables, atom("stss", uint32(0), uint32(len(t.keys)), t.keys))
	}
	if t.offsets != nil {
		tables = append(tables, atom("ctts", uint32(0), uint32(len(t.offsets)), t.offsets))
	}
	tables = append(tables, atom("stsc", uint32(0), uint32(len(t.chunks)), t.chunks))
	if t.uniform {
		tables = append(tables, atom("stsz", uint32(0), sizes[0], uint32(len(sizes))))
	} else {
		tables = append(tables, atom("stsz", uint32(0), uint32(0), uint32(len(sizes)), sizes))
	}
	var narrow []uint32
	for i := range places {
		places[i] += uint64(base)
		narrow = append(narrow, uint32(places[i]))
	}
	if wide {
		tables = append(tables, atom("co64", uint32(0), uint32(len(places)), places))
	} else {
		tables = append(tables, atom("stco", uint32(0), uint32(len(places)), narrow))
	}
	for i := range places {
		places[i] -= uint64(base)
	}
	return atom("trak", times("tkhd", wide, 0, t.duration()*1000/uint64(t.scale)), atom("edts", atom("free", "is left out")),
		atom("mdia", times("mdhd", wide, t.scale, t.duration()), atom("hdlr", "handler"),
			atom("minf", atom("vmhd", "video"), atom("dinf", "data"), atom("stbl", tables...))))
}

// played is what a player finds of a track.
type played struct {
	samples  []string
	times    []uint64 // when each sample is decoded, in units of the track's scale
	keys     []uint32
	offsets  []uint32 // of each sample
	skip     uint64   // by the edit list
	duration uint64
}

// play reads a file as players do: it is an implementation of its own.
func play(t *testing.T, file []byte) (tracks []played) {
	t.Helper()
	var walk func(p []byte)
	var cur *played
	var chunks [][3]uint32
	var sizes []uint32
	u32 := binary.BigEndian.Uint32
	walk = func(p []byte) {
		for len(p) >= 8 {
			n, name := int(u32(p)), string(p[4:8])
			if n < 8 || n > len(p) {
				t.Fatalf("%q has %d bytes of %d", name, n, len(p))
			}
			c := p[8:n]
			switch name {
			case "moov", "mdia", "minf", "stbl", "edts":
				walk(c)
			case "trak":
				tracks = append(tracks, played{})
				cur = &tracks[len(tracks)-1]
				walk(c)
			case "mdhd":
				if cur.duration = uint64(u32(c[16:])); c[0] == 1 {
					cur.duration = binary.BigEndian.Uint64(c[24:])
				}
			case "elst":
				cur.skip = binary.BigEndian.Uint64(c[16:])
			case "stts":
				at := uint64(0)
				for i := range int(u32(c[4:])) {
					for range u32(c[8+8*i:]) {
						cur.times, at = append(cur.times, at), at+uint64(u32(c[12+8*i:]))
					}
				}
			case "stss":
				cur.keys = []uint32{}
				for i := range int(u32(c[4:])) {
					cur.keys = append(cur.keys, u32(c[8+4*i:]))
				}
			case "ctts":
				for i := range int(u32(c[4:])) {
					for range u32(c[8+8*i:]) {
						cur.offsets = append(cur.offsets, u32(c[12+8*i:]))
					}
				}
			case "stsc":
				chunks = nil
				for i := range int(u32(c[4:])) {
					chunks = append(chunks, [3]uint32{u32(c[8+12*i:]), u32(c[12+12*i:]), u32(c[16+12*i:])})
				}
			case "stsz":
				sizes = nil
				for i := range int(u32(c[8:])) {
					if size := u32(c[4:]); size > 0 {
						sizes = append(sizes, size)
					} else {
						sizes = append(sizes, u32(c[12+4*i:]))
					}
				}
			case "stco", "co64":
				for i := range int(u32(c[4:])) {
					at := 0
					if name == "stco" {
						at = int(u32(c[8+4*i:]))
					} else {
						at = int(binary.BigEndian.Uint64(c[8+8*i:]))
					}
					for range (movieTrack{chunks: chunks}).inChunk(i + 1) {
						if len(sizes) == 0 {
							break
						}
						cur.samples = append(cur.samples, string(file[at:at+int(sizes[0])]))
						at, sizes = at+int(sizes[0]), sizes[1:]
					}
				}
				if len(sizes) > 0 {
					t.Fatalf("%d samples are in no chunk", len(sizes))
				}
			}
			p = p[n:]
		}
	}
	walk(file)
	return tracks
}

// content returns the part as a client receives it.
func content(file []byte, p *mp4.Part) []byte {
	return slices.Concat(p.Header, file[p.From:p.To])
}

var movies = map[string]movie{
	"two tracks": {tracks: []movieTrack{
		{scale: 100, times: [][2]uint32{{7, 10}, {1, 40}, {12, 10}}, keys: []uint32{1, 6, 13}, offsets: [][2]uint32{{2, 5}, {9, 6}, {9, 7}}, chunks: [][3]uint32{{1, 3, 1}, {3, 1, 1}, {4, 4, 2}}},
		{scale: 1000, times: [][2]uint32{{40, 50}}, chunks: [][3]uint32{{1, 5, 1}}},
	}},
	"media first": {mediaFirst: true, tracks: []movieTrack{{scale: 10, times: [][2]uint32{{30, 1}}, chunks: [][3]uint32{{1, 7, 1}}}}},
	"wide":        {wide: true, tracks: []movieTrack{{scale: 10, times: [][2]uint32{{30, 1}}, keys: []uint32{1, 11, 21}, chunks: [][3]uint32{{1, 4, 1}}}}},
	"uniform":     {tracks: []movieTrack{{scale: 10, times: [][2]uint32{{30, 1}}, chunks: [][3]uint32{{1, 4, 1}, {4, 6, 1}}, uniform: true}}},
	"a chunk":     {tracks: []movieTrack{{scale: 10, times: [][2]uint32{{30, 1}}, chunks: [][3]uint32{{1, 30, 1}}}}},
}

// Each part has the samples that begin in it, from the one that is shown at its start, or from the key frame in front of that,
// with their times, offsets and keys.
func TestParts(t *testing.T) {
	for name, m := range movies {
		file := m.bytes()
		whole := play(t, file)
		for _, keyFrame := range []bool{false, true} {
			for start := uint64(0); start < 2100; start += 70 {
				for _, length := range []uint64{0, 1, 100, 110, 350, 700, 1400, 5000} {
					p, err := mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{Start: start, Length: length, KeyFrame: keyFrame, MaxMovie: 1 << 20})
					about := fmt.Sprint(name, " from ", start, " for ", length, " key frame ", keyFrame)
					if errors.Is(err, mp4.ErrWhole) && start == 0 && length == 0 && !m.mediaFirst {
						continue
					}
					comparePart(t, about, m, whole, file, p, err, start, length, keyFrame)
				}
			}
		}
	}
}

func comparePart(t *testing.T, about string, m movie, whole []played, file []byte, p *mp4.Part, err error, start, length uint64, keyFrame bool) {
	t.Helper()
	var want []played
	empty := true
	for i, track := range m.tracks {
		w := expected(track, whole[i], start, length, keyFrame)
		if w == nil { // it has ended
			continue
		}
		want = append(want, *w)
		empty = empty && len(w.samples) == 0
	}
	if len(want) == 0 || empty {
		if err == nil {
			t.Errorf("%s: an empty part", about)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", about, err)
		return
	}
	out := content(file, p)
	if int64(len(out)) != p.Size() {
		t.Errorf("%s: %d bytes of %d", about, len(out), p.Size())
	}
	got := play(t, out)
	if len(got) != len(want) {
		t.Errorf("%s: %d tracks, want %d", about, len(got), len(want))
		return
	}
	for i := range want {
		if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Errorf("%s, track %d:\n got %v\nwant %v", about, i, got[i], want[i])
		}
	}
}

// expected returns what the part should have of a track, nil if the track has ended.
func expected(track movieTrack, whole played, start, length uint64, keyFrame bool) *played {
	from := start * uint64(track.scale) / 1000
	if track.duration() <= from {
		return nil
	}
	first := 0
	for i, at := range whole.times {
		if at <= from {
			first = i
		}
	}
	shown := first
	if keyFrame && whole.keys != nil {
		for _, key := range whole.keys {
			if int(key)-1 <= shown {
				first = int(key) - 1
			}
		}
	}
	w := &played{skip: whole.times[shown] - whole.times[first], duration: track.duration() - from}
	last := len(whole.times)
	if length > 0 {
		n := length * uint64(track.scale) / 1000
		w.duration = min(w.duration, n)
		for last > first && whole.times[last-1]+durationOf(track, last-1) > whole.times[shown]+n {
			last--
		}
	}
	w.duration += w.skip
	w.samples = append(w.samples, whole.samples[first:last]...)
	for _, at := range whole.times[first:last] {
		w.times = append(w.times, at-whole.times[first])
	}
	if whole.offsets != nil && last > first {
		w.offsets = append(w.offsets, whole.offsets[first:last]...)
	}
	if whole.keys != nil {
		w.keys = []uint32{}
		for _, key := range whole.keys {
			if int(key) > first && int(key) <= last {
				w.keys = append(w.keys, key-uint32(first))
			}
		}
	}
	return w
}

// durationOf returns how long a sample is shown.
func durationOf(t movieTrack, n int) uint64 {
	for _, e := range t.times {
		if n < int(e[0]) {
			return uint64(e[1])
		}
		n -= int(e[0])
	}
	return 0
}
