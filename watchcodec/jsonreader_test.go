package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/culvert-go/culvert/watchcodec"
)

// all reads every frame, and returns the error after the last one.
func all(r io.Reader, maxFrame int) (frames []string, err error) {
	events := watchcodec.NewJSONReader(r, maxFrame)
	for {
		frame, err := events.Next()
		if err != nil {
			if _, again := events.Next(); again != err {
				return frames, fmt.Errorf("the error %v was followed by %v", err, again)
			}
			return frames, err
		}
		frames = append(frames, string(frame))
	}
}

// recordings are watches of a real kube-apiserver v1.36.4, one event a line.
func recordings(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	m := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m[filepath.Base(file)] = data
	}
	return m
}

// However the reads are split, each event is returned whole, once and in order.
func TestRecordings(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole":          func(r io.Reader) io.Reader { return r },
		"byte by byte":   iotest.OneByteReader,
		"halves":         iotest.HalfReader,
		"data with EOF":  iotest.DataErrReader,
		"pieces of 1021": func(r io.Reader) io.Reader { return &pieces{r, 1021} },
	}
	for name, data := range recordings(t) {
		want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		var indented bytes.Buffer
		for _, event := range want {
			if err := json.Indent(&indented, []byte(event), "", "  "); err != nil {
				t.Fatal(err)
			}
		}
		for how, reader := range readers {
			frames, err := all(reader(bytes.NewReader(data)), 0)
			if err != io.EOF || strings.Join(frames, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s, %s: %d frames and %v, want %d", name, how, len(frames), err, len(want))
			}
			frames, err = all(reader(bytes.NewReader(indented.Bytes())), 0)
			if err != io.EOF || strings.Join(frames, "") != indented.String() || len(frames) != len(want) {
				t.Errorf("%s indented, %s: %d frames and %v, want %d", name, how, len(frames), err, len(want))
			}
		}
	}
}

// pieces reads at most n bytes at once.
type pieces struct {
	r io.Reader
	n int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

func TestFrames(t *testing.T) {
	tests := []struct {
		name, stream string
		max          int
		want         string
		err          string
	}{
		{"nothing", "", 0, "", "EOF"},
		{"only space", " \t\r\n", 0, "", "EOF"},
		{"without space between", `{}{"a":1}`, 0, `{} {"a":1}`, "EOF"},
		{"braces in strings", `{"a":"}]{\"}"}{}`, 0, `{"a":"}]{\"}"} {}`, "EOF"},
		{"escaped backslash", `{"a":"\\"}{}`, 0, `{"a":"\\"} {}`, "EOF"},
		{"nested", `{"a":[{"b":[]}]} {}`, 0, `{"a":[{"b":[]}]} {}`, "EOF"},
		{"two on a line", "{}{}\n{}\n", 0, `{} {} {}`, "EOF"},
		{"two on a line, with a blank", "{\"a\":1} {}\n{}\n", 0, `{"a":1} {} {}`, "EOF"},
		{"two on a line, with a tab", "{\"abcdef\":1}\t{}\r\n{}\n", 0, `{"abcdef":1} {} {}`, "EOF"},
		{"braces in a string on a line", "{\"a\":\"} {}{\"}\n{}\n", 0, `{"a":"} {}{"} {}`, "EOF"},
		{"cut in an object", `{} {"a":`, 0, `{}`, "unexpected EOF"},
		{"cut in a string", `{"a":"`, 0, ``, "unexpected EOF"},
		{"cut after a backslash", `{"a":"\`, 0, ``, "unexpected EOF"},
		{"no object", `{} [1]`, 0, `{}`, `watchcodec: byte '[' at offset 3 begins no JSON object`},
		{"an HTML page", "\n<html>", 0, ``, `watchcodec: byte '<' at offset 1 begins no JSON object`},
		{"a stray brace", `{}}`, 0, `{}`, `watchcodec: byte '}' at offset 2 begins no JSON object`},
		{"as large as allowed", `{"a":1}{}`, 7, `{"a":1} {}`, "EOF"},
		{"over the limit", `{}{"a":12}`, 7, `{}`, "watchcodec: frame over the limit"},
		{"over the limit and cut", `{"a":"xxxxxxx`, 7, ``, "watchcodec: frame over the limit"},
	}
	for _, test := range tests {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			frames, err := all(reader(strings.NewReader(test.stream)), test.max)
			if got := strings.Join(frames, " "); got != test.want || err.Error() != test.err {
				t.Errorf("%s: %s and %v, want %s and %s", test.name, got, err, test.want, test.err)
			}
		}
	}
}

// Offsets count from the start of the stream, also when bytes before them were dropped from the
// buffer.
func TestSyntaxErrorOffset(t *testing.T) {
	stream := strings.Repeat(`{"a":"`+strings.Repeat("x", 1000)+`"}`, 100) + "!"
	_, err := all(strings.NewReader(stream), 0)
	if want := fmt.Sprintf("watchcodec: byte '!' at offset %d begins no JSON object", len(stream)-1); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// What was read before an error is delivered before it.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	frames, err := all(io.MultiReader(strings.NewReader(`{"a":1}{"b"`), iotest.ErrReader(broken)), 0)
	if err != broken || len(frames) != 1 {
		t.Errorf("%q and %v", frames, err)
	}
}

// In steady state a frame needs no allocation.
func TestNextAllocates(t *testing.T) {
	event := []byte(`{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":{"name":"a"}}}` + "\n")
	r := watchcodec.NewJSONReader(&endless{event: event}, 0)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for each frame", n)
	}
}

// endless repeats an event for ever.
type endless struct {
	event []byte
	rest  []byte
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(e.rest) == 0 {
			e.rest = e.event
		}
		c := copy(p[n:], e.rest)
		e.rest = e.rest[c:]
		n += c
	}
	return n, nil
}

// FuzzJSONReader: a stream that encoding/json accepts as a sequence of objects is split at the same
// places, however the reads are split. Any other stream ends with an error.
func FuzzJSONReader(f *testing.F) {
	for _, seed := range []string{`{}{}`, ` {"a":"}\"\\"} {"b":[{}]}`, `{"a"`, `[]`, `{}x`, `{"\u007d":1}`} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, stream string, size int) {
		if size < 1 {
			size = 1
		}
		whole, wholeErr := all(strings.NewReader(stream), 1<<20)
		cut, cutErr := all(&pieces{strings.NewReader(stream), size}, 1<<20)
		want, ok := decode(stream)
		if ok && (strings.Join(whole, "|") != strings.Join(cut, "|") || fmt.Sprint(wholeErr) != fmt.Sprint(cutErr)) {
			t.Errorf("whole %q %v, in pieces of %d %q %v", whole, wholeErr, size, cut, cutErr)
		}
		if ok && (wholeErr != io.EOF || strings.Join(whole, "|") != strings.Join(want, "|")) {
			t.Errorf("%q and %v, want %q", whole, wholeErr, want)
		}
	})
}

// decode splits stream by encoding/json, if it is a sequence of objects.
func decode(stream string) (objects []string, ok bool) {
	d := json.NewDecoder(strings.NewReader(stream))
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return objects, err == io.EOF
		}
		if raw[0] != '{' {
			return nil, false
		}
		objects = append(objects, string(raw))
	}
}

// BenchmarkJSONReader splits a recorded watch, and compares with encoding/json.
func BenchmarkJSONReader(b *testing.B) {
	data := recordings(b)["endpoints.json"]
	b.Run("culvert", func(b *testing.B) {
		r := watchcodec.NewJSONReader(&endless{event: data}, 0)
		perFrame := int64(len(data) / bytes.Count(data, []byte("\n")))
		b.SetBytes(perFrame)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		d := json.NewDecoder(&endless{event: data})
		b.SetBytes(int64(len(data) / bytes.Count(data, []byte("\n"))))
		b.ReportAllocs()
		for b.Loop() {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
