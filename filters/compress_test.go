package filters_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// page is text of several kilobytes.
var page = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 200)

// decode decodes a body by compress/gzip or by package zstd.
func decode(t testing.TB, encoding string, body io.Reader) string {
	t.Helper()
	switch encoding {
	case "gzip":
		r, err := stdgzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = r
	case "zstd":
		r, err := zstd.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		body = r
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Errorf("%s: %v", encoding, err)
	}
	return string(text)
}

func encode(t testing.TB, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		e, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = e
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The client's weights decide. Of equals the first encoding that is offered is used.
func TestCompressNegotiation(t *testing.T) {
	f := good(t)(filters.Compress(filters.CompressOptions{}))
	gzipOnly := good(t)(filters.Compress(filters.CompressOptions{Encodings: []string{"gzip"}}))
	for accept, want := range map[string]string{
		"":                           " ",
		"gzip":                       "gzip gzip",
		"x-gzip":                     "gzip gzip",
		"GZIP":                       "gzip gzip",
		"gzip, zstd":                 "zstd gzip",
		"gzip;q=1, zstd;q=0.5":       "gzip gzip",
		"gzip;q=0.5, zstd;q=0.501":   "zstd gzip",
		"gzip;q=0, zstd;q=0.000":     " ",
		"*":                          "zstd gzip",
		"*;q=0.5, zstd;q=0":          "gzip gzip",
		"br, deflate":                " ",
		"identity, gzip;q=0.5":       " ",
		"identity;q=0.1, gzip;q=0.5": "gzip gzip",
		"gzip; q=0.8 , deflate":      "gzip gzip",
		"gzip;q=2, zstd;q=x":         " ",
		"gzip;q=0.1234":              " ",
		"gzip;level=9":               " ",
	} {
		got := ""
		for i, filter := range []culvert.Filter{f, gzipOnly} {
			r := get()
			if accept != "" {
				r.Header.Set("Accept-Encoding", accept)
			}
			resp, body := through(filter, respond(page, "Content-Type", "text/plain"), r)
			encoding := resp.Header.Get("Content-Encoding")
			if text := decode(t, encoding, strings.NewReader(body)); text != page {
				t.Errorf("%q: %d bytes, want %d", accept, len(text), len(page))
			}
			if resp.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q: Vary %q", accept, resp.Header.Get("Vary"))
			}
			got += []string{"", " "}[i] + encoding
		}
		if got != want {
			t.Errorf("%q: chose %q, want %q", accept, got, want)
		}
	}
}

// Responses that must not be compressed are not changed.
func TestCompressLeavesAlone(t *testing.T) {
	f := good(t)(filters.Compress(filters.CompressOptions{}))
	for name, test := range map[string]struct {
		status  int
		text    string
		fields  []string
		request []string
		vary    string
	}{
		"an image":            {200, page, []string{"Content-Type", "image/png"}, nil, ""},
		"no type":             {200, page, []string{"Content-Type", ""}, nil, ""},
		"too short":           {200, "short", []string{"Content-Type", "text/plain", "Content-Length", "5"}, nil, ""},
		"encoded":             {200, page, []string{"Content-Type", "text/plain", "Content-Encoding", "br"}, nil, ""},
		"no-transform":        {200, page, []string{"Content-Type", "text/plain", "Cache-Control", "public, No-Transform"}, nil, ""},
		"a range":             {206, page, []string{"Content-Type", "text/plain", "Content-Range", "bytes 0-1/2"}, nil, ""},
		"a range that is not": {416, page, []string{"Content-Type", "text/plain", "Content-Range", "bytes */2"}, nil, ""},
		"a Range request":     {200, page, []string{"Content-Type", "text/plain", "Vary", "Origin"}, []string{"Range", "bytes=0-1"}, "Origin,Accept-Encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := through(f, func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(test.fields); i += 2 {
					w.Header()[test.fields[i]] = []string{test.fields[i+1]}
				}
				w.Header().Set("Etag", `"x"`)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.text)
			}, get(append(test.request, "Accept-Encoding", "gzip")...))
			if body != test.text || resp.Header.Get("Etag") != `"x"` || strings.Join(resp.Header["Vary"], ",") != test.vary {
				t.Errorf("%d bytes, fields %v", len(body), resp.Header)
			}
		})
	}
}

func TestCompressedHead(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Compress(filters.CompressOptions{}))
	addr := wiretest.Serve(t, f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", fmt.Sprint(len(page)))
		h.Set("Accept-Ranges", "bytes")
		h.Set("Etag", r.URL.Query().Get("tag"))
		h.Set("Vary", "Cookie, accept-encoding")
		_, _ = io.WriteString(w, page)
	})))
	client := wiretest.Dial(t, addr)
	for tag, want := range map[string]string{`"x"`: `W/"x"`, `W/"x"`: `W/"x"`} {
		for _, method := range []string{"GET", "HEAD"} {
			client.Send(method + " /?tag=" + tag + " HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
			resp, body := client.Response(method)
			h := resp.Header
			if h.Get("Content-Encoding") != "gzip" || h.Get("Etag") != want || h.Get("Accept-Ranges") != "" || resp.ContentLength != -1 && method == "HEAD" || h.Get("Vary") != "Cookie, accept-encoding" {
				t.Errorf("%s: %s %v", method, resp.Status, h)
			}
			if method == "GET" && decode(t, "gzip", strings.NewReader(body)) != page {
				t.Errorf("%d bytes", len(body))
			}
		}
	}
}

// The client can read what a handler flushes, event by event.
func TestCompressStreams(t *testing.T) {
	leaktest.Check(t)
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			f := good(t)(filters.Compress(filters.CompressOptions{}))
			seen := make(chan struct{})
			addr := wiretest.Serve(t, f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					_ = http.NewResponseController(w).Flush()
					wiretest.Await(t, seen, "the client's receipt")
				}
			})))
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", encoding)
			transport := &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var text io.Reader
			if encoding == "gzip" {
				text, err = stdgzip.NewReader(resp.Body)
			} else {
				text, err = zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1))
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				event := make([]byte, len("data: 0\n\n"))
				if _, err := io.ReadFull(text, event); err != nil || string(event) != fmt.Sprintf("data: %d\n\n", i) {
					t.Fatalf("event %q: %v", event, err)
				}
				seen <- struct{}{}
			}
			if rest, err := io.ReadAll(text); err != nil || len(rest) != 0 {
				t.Errorf("and then %q: %v", rest, err)
			}
		})
	}
}

// A response that is aborted ends within its encoding.
func TestCompressAborted(t *testing.T) {
	f := good(t)(filters.Compress(filters.CompressOptions{}))
	w := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }()
		f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, page)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})).ServeHTTP(w, get("Accept-Encoding", "gzip"))
	}()
	r, err := stdgzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != io.ErrUnexpectedEOF || string(text) != page {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestBadCompress(t *testing.T) {
	bad(t, `filters: Compress: unknown encoding "br"`)(filters.Compress(filters.CompressOptions{Encodings: []string{"br"}}))
	for _, o := range []filters.CompressOptions{{MinSize: -1}, {GzipLevel: 10}, {ZstdLevel: 5}} {
		bad(t, "filters: Compress: a size or level is out of range")(filters.Compress(o))
	}
	for _, contentType := range []string{"", "*/*", "text/html; charset=utf-8", "text/html,text/plain", "text /html", "te*t/html"} {
		bad(t, fmt.Sprintf("filters: Compress: content type %q matches no response", contentType))(filters.Compress(filters.CompressOptions{ContentTypes: []string{contentType}}))
	}
	bad(t, "filters: Decompress of nothing, or a negative MaxRequest")(filters.Decompress(filters.DecompressOptions{}))
}

// Handlers receive decoded requests.
func TestDecompressRequests(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Decompress(filters.DecompressOptions{Requests: true, MaxRequest: 10000}))
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(400)
			return
		}
		fmt.Fprintf(w, "%d %q %s", r.ContentLength, r.Header.Get("Content-Encoding"), body)
	}
	post := func(encoding, body string) *http.Request {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		return r
	}
	for _, encoding := range []string{"gzip", "X-GZIP", "zstd"} {
		if _, body := through(f, echo, post(encoding, encode(t, strings.ToLower(encoding), "hello"))); body != `-1 "" hello` {
			t.Errorf("%s: %s", encoding, body)
		}
		if resp, _ := through(f, echo, post(encoding, encode(t, strings.ToLower(encoding), strings.Repeat("x", 10001)))); resp.StatusCode != 400 {
			t.Errorf("%s: a body over the limit was read: %s", encoding, resp.Status)
		}
		if resp, _ := through(f, echo, post(encoding, "not encoded")); resp.StatusCode != 400 {
			t.Errorf("%s: garbage was read: %s", encoding, resp.Status)
		}
	}
	for _, encoding := range []string{"", "identity"} {
		if _, body := through(f, echo, post(encoding, "plain")); body != fmt.Sprintf("5 %q plain", encoding) {
			t.Errorf("plain: %s", body)
		}
	}
	for _, encoding := range []string{"br", "gzip, gzip"} {
		if resp, _ := through(f, echo, post(encoding, "x")); resp.StatusCode != 415 || resp.Header.Get("Accept-Encoding") != "gzip, zstd" {
			t.Errorf("%s: %s %v", encoding, resp.Status, resp.Header)
		}
	}
}

// Responses are decoded whether they are written byte by byte or at once.
func TestDecompressResponses(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Decompress(filters.DecompressOptions{Responses: true}))
	for _, encoding := range []string{"gzip", "zstd"} {
		encoded := encode(t, encoding, page)
		members := encoded + encode(t, encoding, "more") // several members or frames are one content (RFC 1952, RFC 8878)
		for _, size := range []int{1, 100, len(members)} {
			resp, body := through(f, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				w.Header().Set("Content-Length", fmt.Sprint(len(members)))
				w.Header().Set("Etag", `"x"`)
				for rest := members; rest != ""; {
					n := min(size, len(rest))
					_, _ = io.WriteString(w, rest[:n])
					rest = rest[n:]
				}
			}, get())
			if body != page+"more" || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" || resp.Header.Get("Etag") != `W/"x"` {
				t.Errorf("%s by %d: %d bytes, fields %v", encoding, size, len(body), resp.Header)
			}
		}
		resp, body := through(f, respond(encoded, "Content-Encoding", "br"), get())
		if body != encoded || resp.Header.Get("Content-Encoding") != "br" {
			t.Errorf("an unknown encoding: %d bytes, fields %v", len(body), resp.Header)
		}
		for name, broken := range map[string]string{"half": encoded[:len(encoded)/2], "garbage": "no " + encoding} {
			func() {
				defer func() {
					if v := recover(); v != http.ErrAbortHandler {
						t.Errorf("%s of %s ended with %v", name, encoding, v)
					}
				}()
				through(f, respond(broken, "Content-Encoding", encoding), get())
			}()
		}
		if _, body := through(f, respond("", "Content-Encoding", encoding), get()); body != "" {
			t.Errorf("an empty body became %q", body)
		}
	}
}

func TestDecompressStreams(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Decompress(filters.DecompressOptions{Responses: true}))
	for _, encoding := range []string{"gzip", "zstd"} {
		seen := make(chan struct{})
		addr := wiretest.Serve(t, f(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			var e interface {
				io.WriteCloser
				Flush() error
			} = gzip.NewWriter(w)
			if encoding == "zstd" {
				e, _ = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			}
			for range 3 {
				_, _ = io.WriteString(e, "event")
				_ = e.Flush()
				_ = http.NewResponseController(w).Flush()
				wiretest.Await(t, seen, "the client's receipt")
			}
			if r.URL.Path == "/abort" {
				panic(http.ErrAbortHandler)
			}
			_ = e.Close()
		})))
		for _, path := range []string{"/", "/abort"} {
			client := wiretest.Dial(t, addr)
			client.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Header()
			for range 3 {
				client.Receive("5\r\nevent\r\n")
				seen <- struct{}{}
			}
			if path == "/" {
				client.Receive("0\r\n\r\n")
			} else if rest := client.Ended(); rest != "" {
				t.Errorf("and then %q", rest)
			}
		}
	}
}

// BenchmarkCompress compares the filter's gzip and zstd with package compress/gzip.
func BenchmarkCompress(b *testing.B) {
	text := strings.Repeat(page, 8)
	for _, encoding := range []string{"gzip", "zstd"} {
		b.Run(encoding, func(b *testing.B) {
			h := good(b)(filters.Compress(filters.CompressOptions{}))(respond(text, "Content-Type", "text/plain"))
			benchmarkEncoding(b, h, encoding, len(text))
		})
	}
	b.Run("compress_gzip", func(b *testing.B) {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			e := stdgzip.NewWriter(w)
			_, _ = io.WriteString(e, text)
			_ = e.Close()
		})
		benchmarkEncoding(b, h, "gzip", len(text))
	})
}

func benchmarkEncoding(b *testing.B, h http.Handler, encoding string, size int) {
	r := get("Accept-Encoding", encoding)
	w := &counter{header: http.Header{}}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		w.n = 0
		h.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(size)/float64(w.n), "ratio")
}

type counter struct {
	header http.Header
	n      int
}

func (c *counter) Header() http.Header { return c.header }

func (c *counter) WriteHeader(int) {}

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}
