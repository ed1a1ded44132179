package filters

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/response"
)

// CompressOptions configures Compress. The zero value compresses text of a
// kilobyte and more by zstd or gzip, as the client likes.
type CompressOptions struct {
	// Encodings are those that are offered, best first: "zstd" and "gzip". nil
	// means both, zstd first.
	Encodings []string
	// ContentTypes are the media types that are compressed, "text/html" or
	// "text/*", without parameters. nil means text, JSON, JavaScript, XML, SVG, WebAssembly and
	// fonts that are not compressed by themselves.
	ContentTypes []string
	// MinSize is the length from which on an answer is compressed; one of unknown
	// length always is, since it may be a stream: without a Content-Length of its handler, as a response is that its
	// target has sent with Transfer-Encoding: chunked, or whose content a filter behind this one changes. 0 means 1024 bytes.
	MinSize int64
	// GzipLevel is from 1 (fastest) to 9 (smallest); 0 means 6.
	GzipLevel int
	// When says of an answer that could be compressed whether it is; nil means that it
	// is.
	When func(r *http.Request, status int, h http.Header) bool
	// ZstdLevel is the level of package zstd, from 1 to 4; 0 means 2, its
	// default.
	ZstdLevel int
}

var standardTypes = []string{"text/*", "application/json", "application/javascript", "application/xml", "application/wasm",
	"application/manifest+json", "application/ld+json", "application/rss+xml", "application/atom+xml", "application/xhtml+xml",
	"application/problem+json", "image/svg+xml", "font/ttf", "font/otf"}

// Compress returns a filter that compresses answers for clients that accept it
// (RFC 9110 section 12.5.3). Streams stay streams: what a handler flushes is sent,
// compressed.
//
// It leaves alone what is encoded already, ranges, answers to Range requests,
// no-transform, upgrades and CONNECT, and answers without content. A strong ETag becomes a
// weak one, Content-Length, Accept-Ranges and checksums of the content (RFC 9530) go, and Vary says Accept-Encoding
// wherever another client would have been given another encoding.
//
// Compressing secrets together with what an attacker chooses tells him the secrets
// by the length (BREACH): leave out routes that do that.
func Compress(o CompressOptions) (Filter, error) {
	c, err := newCompressor(o)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect { // the bytes are a tunnel's
				next.ServeHTTP(w, r)
				return
			}
			a := &compressing{c: c}
			response.Serve(next, w, r, &response.Hooks{Head: a.head, Body: a.body})
		})
	}, nil
}

// encoder writes one encoding; package gzip's and zstd's are of this form.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// encoding is one that is offered, with its used encoders.
type encoding struct {
	name string
	pool *sync.Pool
}

type compressor struct {
	encodings []encoding
	types     []string
	minSize   int64
	when      func(*http.Request, int, http.Header) bool
}

func newCompressor(o CompressOptions) (*compressor, error) {
	if o.MinSize < 0 || o.GzipLevel < 0 || o.GzipLevel > 9 || o.ZstdLevel < 0 || o.ZstdLevel > 4 {
		return nil, errors.New("filters: Compress: a size or level is out of range")
	}
	if o.Encodings == nil {
		o.Encodings = []string{"zstd", "gzip"}
	}
	if o.ContentTypes == nil {
		o.ContentTypes = standardTypes
	}
	if o.MinSize == 0 {
		o.MinSize = 1024
	}
	types, err := compileTypes(o.ContentTypes)
	if err != nil {
		return nil, fmt.Errorf("filters: Compress: %w", err)
	}
	if types == nil {
		types = []string{} // given, and empty: nothing is compressed
	}
	c := &compressor{types: types, minSize: o.MinSize, when: o.When}
	for _, name := range o.Encodings {
		pool := &sync.Pool{}
		switch name {
		case "gzip":
			level := o.GzipLevel
			if level == 0 {
				level = 6
			}
			pool.New = func() any { return must(gzip.NewWriterLevel(nil, level)) }
		case "zstd":
			level := zstd.EncoderLevel(o.ZstdLevel)
			if level == 0 {
				level = zstd.SpeedDefault
			}
			// A window of 8 MiB is the most that a browser takes (RFC 9659), and one
			// goroutine is what a request has.
			pool.New = func() any {
				return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)))
			}
		default:
			return nil, errors.New("filters: Compress: unknown encoding " + strconv.Quote(name))
		}
		c.encodings = append(c.encodings, encoding{name, pool})
	}
	return c, nil
}

// must is for options that were checked before.
func must[E encoder](e E, err error) encoder {
	if err != nil {
		panic(err)
	}
	return e
}

// compressing is one answer.
type compressing struct {
	c      *compressor
	chosen *encoding // nil: it stays as it is
}

// head decides, and changes the head.
func (a *compressing) head(r *http.Request, status int, h http.Header) {
	if !a.c.fits(status, h) {
		return
	}
	if a.c.when != nil && !a.c.when(r, status, h) {
		return
	}
	addVary(h, "Accept-Encoding")
	a.chosen = a.c.choose(r.Header["Accept-Encoding"])
	if a.chosen == nil || r.Header["Range"] != nil {
		a.chosen = nil
		return
	}
	h["Content-Encoding"] = []string{a.chosen.name}
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	deleteDigests(h)
	if tag := h["Etag"]; len(tag) > 0 && !strings.HasPrefix(tag[0], "W/") {
		h["Etag"] = []string{"W/" + tag[0]} // RFC 9110 section 8.8.1: it is the same meaning, not the same bytes
	}
}

// fits says whether an answer is one to compress, for clients that like it.
func (c *compressor) fits(status int, h http.Header) bool {
	if status < 200 || status == http.StatusNoContent || status == http.StatusNotModified || status == http.StatusPartialContent {
		return false
	}
	if h["Content-Encoding"] != nil || h["Content-Range"] != nil || head.HasToken(h["Cache-Control"], "no-transform") {
		return false
	}
	if length := h["Content-Length"]; len(length) > 0 {
		if n, err := strconv.ParseInt(length[0], 10, 64); err != nil || n < c.minSize {
			return false
		}
	}
	return typeFits(c.types, h)
}

// choose returns the encoding that the client likes best; of equals the first one.
func (c *compressor) choose(accept []string) *encoding {
	var best *encoding
	bestQ := 0
	for i := range c.encodings {
		if q := quality(accept, c.encodings[i].name); q > bestQ {
			best, bestQ = &c.encodings[i], q
		}
	}
	if best != nil && bestQ < identityQuality(accept) {
		return nil
	}
	return best
}

// body returns the encoder.
func (a *compressing) body(r *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case a.chosen == nil:
		return nil
	case r.Method == http.MethodHead:
		return response.Discard
	}
	e := a.chosen.pool.Get().(encoder)
	e.Reset(w)
	return &encodedBody{encoder: e, pool: a.chosen.pool}
}

// encodedBody gives its encoder back. One whose handler panicked is never closed,
// and left to the garbage collector.
type encodedBody struct {
	encoder
	pool *sync.Pool
}

func (b *encodedBody) Close() error {
	err := b.encoder.Close()
	b.encoder.Reset(nil)
	b.pool.Put(b.encoder)
	b.encoder = nil
	return err
}

// addVary adds a name to Vary unless it stands there.
func addVary(h http.Header, name string) {
	if !head.HasToken(h["Vary"], name) && !slices.Contains(h["Vary"], "*") {
		h["Vary"] = append(h["Vary"], name)
	}
}
