package filters

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/pushdecode"
	"github.com/culvert-go/culvert/internal/response"
)

// DecompressOptions configures Decompress.
type DecompressOptions struct {
	// Requests decodes the bodies of requests, Responses those of responses. At least one
	// is required.
	Requests, Responses bool
	// MaxRequest bounds the decoded body of a request in bytes, so that a small body
	// can't become a huge one; 0 means 32 MiB. A larger body fails to be read with an
	// *http.MaxBytesError, to which package proxy responds with 413.
	MaxRequest int64
}

// Decompress returns a filter for handlers and filters that must read bodies. Those inside
// of it receive decoded requests, those outside of it decoded responses. It knows gzip
// and zstd. It responds with 415 to a request in another encoding, and does not change a
// response in another one. What a handler flushes is decoded and flushed, so that streams
// work. An empty body is complete in any encoding; one that ends before its encoding
// does fails to be read, or aborts the response. Checksums of the encoded content
// (RFC 9530) are removed. Put Compress outside of it for clients that accept compressed
// responses.
func Decompress(o DecompressOptions) (culvert.Filter, error) {
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
			d := &decoding{headRequest: r.Method == http.MethodHead}
			response.Serve(next, w, r, &response.Hooks{Header: d.header, Body: d.body, Trailer: header.DeleteDigestTrailers, End: d.release})
		})
	}, nil
}

// newDecoder returns a reader that decodes src. Nothing is read from src before the
// first Read.
func newDecoder(encoding string, src io.Reader) io.ReadCloser {
	return &decoder{encoding: encoding, src: failing{Reader: src}}
}

// failing is a decoder's source that records its failure. Package zstd takes io.ErrUnexpectedEOF for the end where
// a frame may begin, so that a body that was cut off would look complete.
type failing struct {
	io.Reader
	err error // never io.EOF
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// decodable reports whether newDecoder knows the encoding.
func decodable(encoding string) bool {
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

// cause returns the failure of the source, if that is why the decoder has failed, else err.
func (d *decoder) cause(err error) error {
	if err != nil && d.src.err != nil {
		return d.src.err
	}
	return err
}

func (d *decoder) open() (err error) {
	if strings.EqualFold(d.encoding, "zstd") {
		// One goroutine, and the window that browsers support (RFC 9659).
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

// decoding is the state of one response.
type decoding struct {
	headRequest bool   // the method was HEAD
	encoding    string // "": the response is not decoded
	w           *pushdecode.Writer
}

// header determines the encoding, and changes the header.
func (d *decoding) header(_ *http.Request, status int, h http.Header) {
	encoding := strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))
	if !decodable(encoding) || status == http.StatusPartialContent || h["Content-Range"] != nil || status < 200 {
		return
	}
	d.encoding = encoding
	delete(h, "Content-Encoding")
	header.ContentRecoded(h)
}

func (d *decoding) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case d.encoding == "":
		return nil
	case d.headRequest:
		return response.Discard
	}
	d.w = newDecodedBody(d.encoding, w)
	return d.w
}

// release frees the decoder, also if the handler has panicked.
func (d *decoding) release(*http.Request, culvert.ResponseStats) {
	if d.w != nil {
		d.w.Stop()
	}
}

// newDecodedBody returns a writer of encoded content that writes the decoded content to w, on the goroutine of its caller.
func newDecodedBody(encoding string, w io.Writer) *pushdecode.Writer {
	return pushdecode.NewWriter(func(encoded io.Reader) error {
		src := newDecoder(encoding, encoded)
		defer src.Close()
		_, err := io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{src})
		return err
	})
}
