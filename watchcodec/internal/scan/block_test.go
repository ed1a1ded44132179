package scan

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzBlocks: the classification of a block equals that made byte by byte, with assembly and
// without, and a value ends where encoding/json ends it, in pieces too.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte(`{"a":["b\\","\"]"],"c":{"d":"\\\""}}`), 3, 0)
	f.Add(append(bytes.Repeat([]byte(`{"k":[`), 30), bytes.Repeat([]byte(`]}`), 30)...), 7, 5)
	f.Add([]byte(`{"`+string(bytes.Repeat([]byte(`\\`), 70))+`":"`+string(bytes.Repeat([]byte(`\"`), 70))+`{"}`), 64, 1)
	f.Fuzz(func(t *testing.T, p []byte, piece, shift int) {
		checkBlocks(t, p)
		var first json.RawMessage
		d := json.NewDecoder(bytes.NewReader(p))
		if len(p) == 0 || p[0] != '{' && p[0] != '[' || d.Decode(&first) != nil {
			return
		}
		want := len(first)
		if n, complete := (&Scanner{}).Skip(p); n != want || !complete {
			t.Errorf("%q: a scanner skips %d %v, want %d", p, n, complete, want)
		}
		shift &= 127
		if n, err := skipNested(append(bytes.Repeat([]byte(`"`), shift), p...), shift); n-shift != want || err != nil {
			t.Errorf("%q: a window skips to %d %v, want %d", p, n, err, want)
		}
		if n := skipPieces(p, max(1, piece)); n != want {
			t.Errorf("%q: in pieces of %d a scanner skips %d, want %d", p, piece, n, want)
		}
	})
}

func skipPieces(p []byte, piece int) (n int) {
	var s Scanner
	for n < len(p) {
		m, complete := s.Skip(p[n:min(len(p), n+piece)])
		if n += m; complete {
			break
		}
	}
	return n
}

func checkBlocks(t *testing.T, p []byte) {
	p = append(p, make([]byte, blockSize-len(p)%blockSize)...)
	got, portable := make([]block, len(p)/blockSize), make([]block, len(p)/blockSize)
	classify(p, got)
	classifyPortable(p, portable)
	for i := range got {
		var want block
		for j, c := range p[i*blockSize:][:blockSize] {
			bit := uint64(1) << j
			switch c {
			case '"':
				want.quote |= bit
			case '\\':
				want.backslash |= bit
			case '{', '[':
				want.open |= bit
			case '}', ']':
				want.close |= bit
			}
			if c&0x20 != 0 {
				want.curly |= bit
			}
		}
		if got[i] != want || portable[i] != want {
			t.Fatalf("block %q: %x, portable %x, want %x", p[i*blockSize:][:blockSize], got[i], portable[i], want)
		}
	}
}
