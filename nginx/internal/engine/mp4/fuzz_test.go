package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/mp4"
)

// No file makes Cut panic, or return bytes that the file does not have, or use more memory than MaxMovie is worth.
func FuzzCut(f *testing.F) {
	for _, m := range movies {
		f.Add(m.bytes(), uint64(500), uint64(700), true)
	}
	f.Fuzz(func(t *testing.T, file []byte, start, length uint64, keyFrame bool) {
		p, err := mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{Start: start, Length: length, KeyFrame: keyFrame, MaxMovie: 1 << 16})
		switch {
		case err != nil && p != nil:
			t.Error("a part with an error")
		case err != nil:
		case p.From < 0 || p.To > int64(len(file)) || p.From >= p.To || len(p.Header) > 1<<20:
			t.Errorf("%d bytes, and those from %d to %d of %d", len(p.Header), p.From, p.To, len(file))
		}
	})
}

func TestErrors(t *testing.T) {
	m := movies["two tracks"]
	file := m.bytes()
	for want, cut := range map[string]func() (*mp4.Part, error){
		"box moov is too large: 1219, you may want to increase mp4_max_buffer_size": func() (*mp4.Part, error) {
			return mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{Start: 1, MaxMovie: 1000})
		},
		"the start time exceeds the duration of the file": func() (*mp4.Part, error) {
			return mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{Start: 1 << 40, MaxMovie: 1 << 20})
		},
		"no box trak was found": func() (*mp4.Part, error) {
			return mp4.Cut(bytes.NewReader(file[:12]), 12, mp4.Options{Start: 1})
		},
		"the file is truncated": func() (*mp4.Part, error) {
			return mp4.Cut(bytes.NewReader(file[:20]), 24, mp4.Options{Start: 1})
		},
		"the whole file is requested": func() (*mp4.Part, error) {
			return mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{MaxMovie: 1 << 20})
		},
	} {
		if p, err := cut(); p != nil || err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{}); !errors.Is(err, mp4.ErrWhole) {
		t.Error(err)
	}
}

// Boxes inside of each other, as deep as the default limit allows, end in an error, and not the process.
func TestDepth(t *testing.T) {
	for _, name := range []string{"minf", "stbl", "mdia", "trak"} {
		names := []string{"moov", "trak", "mdia"}
		for range 10 << 20 / 8 {
			names = append(names, name)
		}
		file := make([]byte, 0, 8*len(names))
		for i, name := range names {
			file = append(binary.BigEndian.AppendUint32(file, uint32(8*(len(names)-i))), name...)
		}
		if p, err := mp4.Cut(bytes.NewReader(file), int64(len(file)), mp4.Options{Start: 1, MaxMovie: 20 << 20}); p != nil || err == nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}
