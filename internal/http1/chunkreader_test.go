package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// requestBody reads the chunked body of a request.
func requestBody(r *bufio.Reader) (content string, trailers http.Header, err error) {
	var b Content
	b.StartRequest(r, Framing{Chunked: true}, maxTestHeader, func(h http.Header) { trailers = h })
	got, err := io.ReadAll(&b)
	return string(got), trailers, err
}

func TestRefusedChunks(t *testing.T) {
	for _, raw := range []string{
		"+5\r\nhello\r\n0\r\n\r\n",
		"-5\r\nhello\r\n0\r\n\r\n",
		"0x5\r\nhello\r\n0\r\n\r\n",
		" 5\r\nhello\r\n0\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n",
		"5\t\r\nhello\r\n0\r\n\r\n",
		"5 ;a\r\nhello\r\n0\r\n\r\n",
		"\r\nhello\r\n0\r\n\r\n",
		";a\r\nhello\r\n0\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5;a\nhello\r\n0\r\n\r\n",
		"5;a\nb\r\nhello\r\n0\r\n\r\n",
		"5;a\rb\r\nhello\r\n0\r\n\r\n",
		"5;a\x00b\r\nhello\r\n0\r\n\r\n",
		"5\r\r\nhello\r\n0\r\n\r\n",
		"5\r\nhello\n0\r\n\r\n",
		"5\r\nhelloX\r\n0\r\n\r\n",
		"5\r\nhello\r\r0\r\n\r\n",
		"5\r\nhello\r\n0\n\r\n",
		"5\r\nhello\r\n0\r\n\n",
		"5\r\nhello\r\n0\r\nA: b\n\n",
		"5\r\nhello\r\n0\r\nA : b\r\n\r\n",
		"5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
		"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
		"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"5\r\nhello\r\n0\r\nTrailer: a\r\n\r\n",
		"5\r\nhello\r\n0\r\nA: " + strings.Repeat("b", 2*maxTestHeader) + "\r\n\r\n",
		"FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
		"10000000000000005\r\nhello\r\n0\r\n\r\n",
		"00000000000000005\r\nhello\r\n0\r\n\r\n",
		"5;" + strings.Repeat("a", 5000) + "\r\nhello\r\n0\r\n\r\n",
		strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\nh\r\n", 40) + "0\r\n\r\n",
		"5\r\nhello\r\n",
		"5\r\nhel",
		"5\r\nhello\r\n0\r\n",
		"5\r\nhello\r\n0\r\nA: b\r\n",
	} {
		for _, r := range []io.Reader{strings.NewReader(raw), iotest.OneByteReader(strings.NewReader(raw))} {
			if got, _, err := requestBody(bufio.NewReader(r)); err == nil {
				t.Errorf("%.80q: %q", raw, got)
			}
		}
	}
}

func TestChunksAndTrailers(t *testing.T) {
	const raw = "5\r\nhello\r\n00a;x=\"y\"\r\n, my world\r\n0\r\nA: b\r\na:\tc\r\n\r\n"
	for _, r := range []io.Reader{strings.NewReader(raw + "GET"), iotest.OneByteReader(strings.NewReader(raw + "GET")), iotest.DataErrReader(strings.NewReader(raw + "GET"))} {
		buffered := bufio.NewReader(r)
		got, trailers, err := requestBody(buffered)
		if got != "hello, my world" || err != nil || strings.Join(trailers["A"], ",") != "b,c" {
			t.Errorf("%q %v %v", got, trailers, err)
		}
		if rest, _ := io.ReadAll(buffered); string(rest) != "GET" {
			t.Errorf("rest %q", rest)
		}
	}
}

// TestTimeoutsLoseNothing: a read of a request's body that fails with a timeout continues later.
func TestTimeoutsLoseNothing(t *testing.T) {
	for _, raw := range []string{"5\r\nhello\r\n6;a\r\n world\r\n0\r\n\r\n", "hello world"} {
		f := Framing{Chunked: raw[0] == '5', Length: int64(len("hello world"))}
		var b Content
		b.StartRequest(bufio.NewReader(&hesitant{r: strings.NewReader(raw)}), f, maxTestHeader, nil)
		var got []byte
		p := make([]byte, 100)
		for reads := 0; ; reads++ {
			n, err := b.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || reads > 2*len(raw) {
				t.Fatalf("%q after %q: %v", raw, got, err)
			}
		}
		if string(got) != "hello world" || !b.Whole() {
			t.Errorf("%q: %q", raw, got)
		}
	}
}

// What was received of a request's body is known without a read, which returns no later than with what was.
func TestReceived(t *testing.T) {
	for _, test := range []struct {
		raw             string
		length          int64 // -1: it is chunked
		ready, received bool
		content         string // of the first read
	}{
		{"", 5, false, false, ""},
		{"he", 5, true, false, "he"},
		{"hello", 5, true, true, "hello"},
		{"helloGET", 5, true, true, "hello"},
		{"5", -1, false, false, ""},
		{"5\r\n", -1, false, false, ""},
		{"5\r\nhe", -1, true, false, "he"},
		{"5\r\nhello\r\n", -1, true, false, "hello"},
		{"5\r\nhello\r\n5\r\nwo", -1, true, false, "hellowo"},
		{"5\r\nhello\r\n5\r\n", -1, true, false, "hello"},
		{"5\r\nhello\r\n0\r\n", -1, true, false, "hello"},
		{"5\r\nhello\r\n0\r\nA: b\r\n", -1, true, false, "hello"},
		{"0\r\n", -1, false, false, ""},
		{"0\r\nA: b\r\n", -1, false, false, ""},
		{"5\r\nhello\r\n0\r\n\r\nGET", -1, true, true, "hello"},
		{"5\r\nhello\r\n0\r\nA: b\r\n\r\n", -1, true, true, "hello"},
		{"5\r\nhelloX", -1, true, false, "hello"},
	} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, test.raw+"|") }()
		buffered := bufio.NewReader(io.LimitReader(r, int64(len(test.raw))))
		_, _ = buffered.Peek(len(test.raw))
		var b Content
		trailers := 0
		b.StartRequest(buffered, Framing{Chunked: test.length < 0, Length: test.length}, maxTestHeader, func(http.Header) { trailers++ })
		if b.Ready() != test.ready || b.Received() != test.received || trailers > 0 {
			t.Errorf("%q: ready %v, received %v, trailers %d", test.raw, b.Ready(), b.Received(), trailers)
		}
		if test.content != "" {
			p := make([]byte, 100)
			if n, err := b.Read(p); string(p[:n]) != test.content || err != nil && err != io.EOF {
				t.Errorf("%q: read %q, %v", test.raw, p[:n], err)
			}
		}
		r.Close()
	}
}

// hesitant is a reader whose reads time out in turn with those that return a byte.
type hesitant struct {
	r    io.Reader
	turn bool
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.turn = !h.turn; h.turn {
		return 0, os.ErrDeadlineExceeded
	}
	return h.r.Read(p[:1])
}

// FuzzChunks compares the chunked bodies of a response and of a request with net/http's reader: a response's is the same,
// and a request's is the same or refused.
func FuzzChunks(f *testing.F) {
	for _, raw := range []string{"5\r\nhello\r\n0\r\n\r\nrest", "5 \r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n1\r\n!\r\n0;c\r\nA: b\r\n\r\n", "5\nhello\n0\n\n", "", "g\r\n", "5\r\nhel",
		"1\r\na\r\nFFFFFFFFFFFFFFFF\r\nbb"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(raw)))
		for _, strict := range []bool{false, true} {
			for _, r := range []io.Reader{strings.NewReader(raw), iotest.OneByteReader(strings.NewReader(raw))} {
				c, br := chunkReader{strict: strict}, bufio.NewReader(r)
				var got []byte
				var err error
				for p := make([]byte, 7); err == nil; {
					var n int
					n, err = c.read(br, p)
					got = append(got, p[:n]...)
				}
				if err == io.EOF {
					err = nil
				}
				if (err == nil) != (wantErr == nil) && !(strict && err != nil) || err == nil && !bytes.Equal(got, want) {
					t.Fatalf("%q, strict %v: %q %v, net/http %q %v", raw, strict, got, err, want, wantErr)
				}
				if !bytes.HasPrefix(want, got) {
					t.Fatalf("%q, strict %v: %q, net/http %q", raw, strict, got, want)
				}
			}
		}
	})
}
