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
	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
)

// CompressOptions configures Compress. The zero value compresses text of 1024 bytes
// and more by zstd or gzip, whichever the client prefers.
type CompressOptions struct {
	// Encodings are the encodings that are offered, in order of preference: "zstd",
	// "gzip" and the names of Encoders. nil means those of Encoders in their order, and then
	// zstd and gzip.
	Encodings []string
	// Encoders are encoders of other packages, of Brotli for instance. Each one must be offered.
	Encoders []Encoder
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

// Encoder is an encoding that Compress offers besides its own.
type Encoder struct {
	// Name is the content coding in lower case, such as "br" (RFC 9110 section 8.4.1). It is
	// neither that of another encoder nor "identity".
	Name string
	// New returns a new writer, with the level that it has been made for. It is called once by Compress, and
	// then by requests, concurrently; it never returns nil. A writer is used for one response at a time, and
	// again after Reset.
	New func() EncodingWriter
}

// EncodingWriter encodes content. The writers of compress/gzip, of klauspost/compress and of
// andybalholm/brotli implement it. Its methods run on the goroutine of a request.
type EncodingWriter interface {
	// Close writes the rest of the encoded content. It does not close the underlying writer.
	io.WriteCloser
	// Flush writes all that is needed to decode what was written so far.
	Flush() error
	// Reset begins another content, which is written to w. If w is nil, the writer is not used before the next Reset, and
	// must not keep the former w.
	Reset(w io.Writer)
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
// routes. Compress returns an error for an unknown encoding, for an Encoder that can't be offered, and for options out of range.
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
	known, err := o.encoders()
	if err != nil {
		return nil, fmt.Errorf("filters: Compress: %w", err)
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
		i := slices.IndexFunc(known, func(e Encoder) bool { return e.Name == name })
		if i < 0 {
			return nil, errors.New("filters: Compress: unknown encoding " + strconv.Quote(name))
		}
		make := known[i].New
		c.encodings = append(c.encodings, encoding{name, &sync.Pool{New: func() any { return make() }}})
	}
	return c, nil
}

// encoders returns those of the options and of this package, and sets Encodings if it is nil.
func (o *CompressOptions) encoders() ([]Encoder, error) {
	known := []Encoder{{"zstd", newZstd(o.ZstdLevel)}, {"gzip", newGzip(o.GzipLevel)}}
	var names []string
	for _, e := range o.Encoders {
		switch {
		case !httpguts.ValidHeaderFieldName(e.Name) || e.Name != strings.ToLower(e.Name) || e.Name == "identity" || e.Name == "*":
			return nil, fmt.Errorf("invalid name %q of an Encoder", e.Name)
		case slices.ContainsFunc(known, func(other Encoder) bool { return other.Name == e.Name }):
			return nil, fmt.Errorf("two encoders of %q", e.Name)
		case o.Encodings != nil && !slices.Contains(o.Encodings, e.Name):
			return nil, fmt.Errorf("the Encoder of %q is not one of Encodings", e.Name)
		case e.New == nil || e.New() == nil:
			return nil, fmt.Errorf("the Encoder of %q has no New, or one that returns nil", e.Name)
		}
		known = append(known, e)
		names = append(names, e.Name)
	}
	if o.Encodings == nil {
		o.Encodings = append(names, "zstd", "gzip")
	}
	return known, nil
}

func newGzip(level int) func() EncodingWriter {
	if level == 0 {
		level = 6
	}
	return func() EncodingWriter { return must(gzip.NewWriterLevel(nil, level)) }
}

// newZstd makes encoders with a window of at most 8 MiB, which browsers accept (RFC 9659), that run on the request's
// goroutine.
func newZstd(o int) func() EncodingWriter {
	level := zstd.EncoderLevel(o)
	if level == 0 {
		level = zstd.SpeedDefault
	}
	return func() EncodingWriter {
		return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)))
	}
}

// must returns e. The options of the encoder were checked before, so that err is nil.
func must[E EncodingWriter](e E, err error) EncodingWriter {
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
	e := c.chosen.pool.Get().(EncodingWriter)
	e.Reset(w)
	return &encodedBody{EncodingWriter: e, pool: c.chosen.pool}
}

// encodedBody is an encoder that Close returns to its pool. After a panic of the handler Close is
// not called, and the encoder is left to the garbage collector.
type encodedBody struct {
	EncodingWriter
	pool *sync.Pool
}

func (b *encodedBody) Close() error {
	err := b.EncodingWriter.Close()
	b.EncodingWriter.Reset(nil)
	b.pool.Put(b.EncodingWriter)
	b.EncodingWriter = nil
	return err
}

// addVary adds a name to Vary unless Vary names it already or is "*".
func addVary(h http.Header, name string) {
	if !header.HasToken(h["Vary"], name) && !slices.Contains(h["Vary"], "*") {
		h["Vary"] = append(h["Vary"], name)
	}
}
