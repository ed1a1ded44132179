package filters

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
)

// CompressOptions configures Compress. The zero value compresses text of 1024 bytes
// and more by zstd or gzip, whichever the client prefers.
type CompressOptions struct {
	// Encodings are the encodings that are offered, in order of preference: "zstd" and
	// "gzip". nil means both, zstd first.
	Encodings []string
	// ContentTypes are the media types that are compressed, such as "text/html" or
	// "text/*", without parameters. nil means text, JSON, JavaScript, XML, SVG, WebAssembly
	// and uncompressed fonts. An empty list that is not nil means none.
	ContentTypes []string
	// MinSize is the smallest Content-Length in bytes that is compressed; 0 means 1024. A
	// response without a Content-Length is always compressed, since it may be a stream.
	// There is none if the target has sent the response with Transfer-Encoding: chunked,
	// for instance, or if a filter inside of this one changes the content.
	MinSize int64
	// GzipLevel is from 1 (fastest) to 9 (smallest); 0 means 6.
	GzipLevel int
	// When, if not nil, is called with the header of each response that could be
	// compressed, and reports whether it is. nil means that all are.
	When func(r *http.Request, status int, h http.Header) bool
	// ZstdLevel is the level of package zstd, from 1 (fastest) to 4 (smallest); 0 means 2,
	// the package's default.
	ZstdLevel int
}

var standardTypes = []string{"text/*", "application/json", "application/javascript", "application/xml", "application/wasm",
	"application/manifest+json", "application/ld+json", "application/rss+xml", "application/atom+xml", "application/xhtml+xml",
	"application/problem+json", "image/svg+xml", "font/ttf", "font/otf"}

// Compress returns a filter that compresses responses for clients that accept it
// (RFC 9110 section 12.5.3). When the handler flushes, the compressed content is
// flushed, so that streams work.
//
// It does not change responses that are encoded already, have no content, are partial, have
// Cache-Control: no-transform, or respond to a request with Range, an upgrade or
// CONNECT. In a compressed response a strong ETag becomes a weak one, and Content-Length,
// Accept-Ranges and checksums of the content (RFC 9530) are removed. Vary names
// Accept-Encoding in each response that would be compressed for another client.
//
// Security: if a response contains a secret together with input that an attacker
// chooses, its compressed length reveals the secret (BREACH). Do not use the filter on such
// routes. Compress returns an error for an unknown encoding and for options out of range.
func Compress(o CompressOptions) (culvert.Filter, error) {
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
			c := &compressing{compressor: c}
			response.Serve(next, w, r, &response.Hooks{Header: c.header, Body: c.body, Trailer: header.DeleteDigestTrailers})
		})
	}, nil
}

// encoder writes one encoding. The writers of packages gzip and zstd implement it.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// encoding is an encoding that is offered, with a pool of its encoders.
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
			// Browsers accept a window of at most 8 MiB (RFC 9659). The encoder runs on the
			// request's goroutine.
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

// must returns e. The options of the encoder were checked before, so that err is nil.
func must[E encoder](e E, err error) encoder {
	if err != nil {
		panic(err)
	}
	return e
}

// compressing is the state of one response.
type compressing struct {
	compressor *compressor
	chosen     *encoding // nil: the response is not compressed
}

// header chooses the encoding, and changes the header.
func (c *compressing) header(r *http.Request, status int, h http.Header) {
	if !c.compressor.compressible(status, h) {
		return
	}
	if when := c.compressor.when; when != nil && !when(r, status, h) {
		return
	}
	addVary(h, "Accept-Encoding")
	c.chosen = c.compressor.choose(r.Header["Accept-Encoding"])
	if c.chosen == nil || r.Header["Range"] != nil {
		c.chosen = nil
		return
	}
	h["Content-Encoding"] = []string{c.chosen.name}
	header.ContentRecoded(h)
}

// compressible reports whether a response may be compressed for clients that accept it.
func (c *compressor) compressible(status int, h http.Header) bool {
	if status < 200 || status == http.StatusNoContent || status == http.StatusNotModified || status == http.StatusPartialContent {
		return false
	}
	if h["Content-Encoding"] != nil || h["Content-Range"] != nil || header.HasToken(h["Cache-Control"], "no-transform") {
		return false
	}
	if length := h["Content-Length"]; len(length) > 0 {
		if n, err := strconv.ParseInt(length[0], 10, 64); err != nil || n < c.minSize {
			return false
		}
	}
	return hasType(c.types, h)
}

// choose returns the encoding that the client prefers, the first one of equals. It returns nil if the
// client accepts none, or prefers no encoding.
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

// body returns the encoder for the content, nil if it is not compressed.
func (c *compressing) body(r *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case c.chosen == nil:
		return nil
	case r.Method == http.MethodHead:
		return response.Discard
	}
	e := c.chosen.pool.Get().(encoder)
	e.Reset(w)
	return &encodedBody{encoder: e, pool: c.chosen.pool}
}

// encodedBody is an encoder that Close returns to its pool. After a panic of the handler Close is
// not called, and the encoder is left to the garbage collector.
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

// addVary adds a name to Vary unless Vary names it already or is "*".
func addVary(h http.Header, name string) {
	if !header.HasToken(h["Vary"], name) && !slices.Contains(h["Vary"], "*") {
		h["Vary"] = append(h["Vary"], name)
	}
}
