package filters

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert/internal/response"
)

// DecompressOptions configures Decompress.
type DecompressOptions struct {
	// Requests decodes bodies of requests, Responses those of answers.
	Requests, Responses bool
	// MaxRequest bounds the decoded body of a request in bytes, so that a small
	// body can't become a huge one; 0 means 32 MiB. One that is larger fails to be
	// read with an *http.MaxBytesError (413).
	MaxRequest int64
}

// Decompress returns a filter for handlers and filters that must read bodies: what
// stands inside of it sees requests decoded, what stands outside of it sees
// answers decoded. It knows gzip and zstd; a request in another encoding is
// answered with 415, an answer in another one stays as it is. Streams stay
// streams. An empty body is one of no content, whatever its encoding; any other one that ends
// within its encoding breaks off. Checksums of the encoded content (RFC 9530) go with the encoding. Put Compress
// outside of it for clients that want answers compressed.
func Decompress(o DecompressOptions) (Filter, error) {
	if o.MaxRequest < 0 || !o.Requests && !o.Responses {
		return nil, fmt.Errorf("filters: Decompress of nothing, or a negative MaxRequest")
	}
	if o.MaxRequest == 0 {
		o.MaxRequest = 32 << 20
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect { // the bytes are a tunnel's
				next.ServeHTTP(w, r)
				return
			}
			if o.Requests {
				decoded, ok := decodeRequest(r)
				if !ok {
					w.Header().Set("Accept-Encoding", "gzip, zstd") // RFC 9110 section 15.5.16
					refuse(w, r, http.StatusUnsupportedMediaType)
					return
				}
				if decoded != nil {
					defer decoded.release()
					r = decoded.request(w, r, o.MaxRequest)
				}
			}
			if !o.Responses {
				next.ServeHTTP(w, r)
				return
			}
			d := &decoding{head: r.Method == http.MethodHead}
			response.Serve(next, w, r, &response.Hooks{Head: d.decide, Body: d.body, End: d.end})
		})
	}, nil
}

// newDecoder returns the reader of an encoding. The reader is made with the first
// Read: it reads a head first.
func newDecoder(encoding string, src io.Reader) io.ReadCloser {
	return &decoder{encoding: encoding, src: failing{Reader: src}}
}

// failing is a decoder's source that remembers its failure: package zstd takes io.ErrUnexpectedEOF for the end where
// a frame may begin, and half a body would be a whole one.
type failing struct {
	io.Reader
	err error // but io.EOF
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

func known(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "gzip", "x-gzip", "zstd":
		return true
	}
	return false
}

type decoder struct {
	encoding string
	src      failing
	r        io.Reader
	zstd     *zstd.Decoder
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.r == nil {
		if err := d.open(); err != nil {
			return 0, d.cause(err)
		}
	}
	n, err := d.r.Read(p)
	return n, d.cause(err)
}

// cause returns the failure of the source where it ends the decoder.
func (d *decoder) cause(err error) error {
	if err != nil && d.src.err != nil {
		return d.src.err
	}
	return err
}

func (d *decoder) open() (err error) {
	if strings.EqualFold(d.encoding, "zstd") {
		// One goroutine, and no more memory than a browser would give it (RFC 9659).
		d.zstd, err = zstd.NewReader(&d.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20))
		d.r = d.zstd
		return err
	}
	d.r, err = gzip.NewReader(&d.src)
	if err != nil {
		d.r = nil
	}
	return err
}

func (d *decoder) Close() error {
	if d.zstd != nil {
		d.zstd.Close()
	}
	return nil
}

// decoding is one answer.
type decoding struct {
	head     bool   // the request was HEAD
	encoding string // "": it stays as it is
	w        *decodedBody
}

func (d *decoding) decide(_ *http.Request, status int, h http.Header) {
	encoding := strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))
	if !known(encoding) || status == http.StatusPartialContent || h["Content-Range"] != nil || status < 200 {
		return
	}
	d.encoding = encoding
	delete(h, "Content-Encoding")
	delete(h, "Content-Length")
	delete(h, "Accept-Ranges")
	deleteDigests(h)
	if tag := h["Etag"]; len(tag) > 0 && !strings.HasPrefix(tag[0], "W/") {
		h["Etag"] = []string{"W/" + tag[0]}
	}
}

func (d *decoding) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case d.encoding == "":
		return nil
	case d.head:
		return response.Discard
	}
	d.w = newDecodedBody(d.encoding, w)
	return d.w
}

// end frees the decoder where the handler has panicked.
func (d *decoding) end(*http.Request, response.Stats) {
	if d.w != nil {
		d.w.stop()
	}
}

// decodedBody turns a decoder, which reads, into a writer, without a goroutine
// that would write to the client at the same time as the handler: the decoder
// runs as a coroutine, and stands still where it would read what is not there yet.
type decodedBody struct {
	in   []byte // written, and not read yet
	done bool   // no more will be written
	more func() (struct{}, bool)
	halt func()
	err  error // of the decoder, once it has ended
	over bool
}

func newDecodedBody(encoding string, w io.Writer) *decodedBody {
	b := &decodedBody{}
	b.more, b.halt = iter.Pull(func(yield func(struct{}) bool) {
		src := newDecoder(encoding, &coroutineReader{b, yield})
		defer src.Close()
		_, b.err = io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{src})
		b.over = true
	})
	return b
}

// coroutineReader is what the decoder reads from.
type coroutineReader struct {
	b     *decodedBody
	yield func(struct{}) bool
}

func (r *coroutineReader) Read(p []byte) (int, error) {
	for len(r.b.in) == 0 {
		if r.b.done {
			return 0, io.EOF
		}
		if !r.yield(struct{}{}) {
			return 0, io.ErrUnexpectedEOF // stopped
		}
	}
	n := copy(p, r.b.in)
	r.b.in = r.b.in[n:]
	return n, nil
}

// Write decodes p as far as it goes.
func (b *decodedBody) Write(p []byte) (int, error) {
	if b.over {
		if b.err != nil {
			return 0, b.err
		}
		return len(p), nil // behind the end of the encoded data
	}
	b.in = p
	b.more()
	if b.over && b.err != nil {
		return 0, b.err
	}
	b.in = nil
	return len(p), nil
}

// Flush has nothing to do: what can be decoded is written already.
func (b *decodedBody) Flush() error { return nil }

// Close decodes what is left, and fails if the encoded data are not complete.
func (b *decodedBody) Close() error {
	b.done = true
	if !b.over {
		b.more()
	}
	b.stop()
	return b.err
}

func (b *decodedBody) stop() { b.halt() }
