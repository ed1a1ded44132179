package filters

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/culvert-go/culvert/internal/header"
)

// decodedRequest is the decoded body of a request. Its decoder is freed when the handler has returned. If a Read is
// under way then, it is freed when that Read returns.
type decodedRequest struct {
	body     io.ReadCloser // the encoded body
	decoder  io.ReadCloser // while state is decoderReading only the reader uses it
	trailers http.Header   // which net/http fills at the end of body

	mu    sync.Mutex // guards state
	state decoderState
}

type decoderState int

const (
	decoderIdle      decoderState = iota
	decoderReading                // a Read is under way
	decoderReleased               // no Read may begin
	decoderReleasing              // no Read may begin, and the one that is under way frees the decoder
)

// decodeRequest returns the decoded body of r, nil if the body is not encoded. ok is false if the encoding is
// unknown.
func decodeRequest(r *http.Request) (_ *decodedRequest, ok bool) {
	encoding := strings.TrimSpace(strings.Join(r.Header["Content-Encoding"], ","))
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil, true
	}
	if !decodable(encoding) {
		return nil, false
	}
	return &decodedRequest{body: r.Body, decoder: newDecoder(encoding, r.Body), trailers: r.Trailer}, true
}

// request returns a copy of r with d as its body, which may have at most max bytes.
func (d *decodedRequest) request(w http.ResponseWriter, r *http.Request, max int64) *http.Request {
	out := *r
	out.Body = http.MaxBytesReader(w, d, max)
	out.ContentLength = -1
	out.Header = r.Header.Clone()
	delete(out.Header, "Content-Encoding")
	delete(out.Header, "Content-Length")
	header.DeleteDigests(out.Header)
	header.DeleteDigests(out.Trailer)
	return &out
}

func (d *decodedRequest) Read(p []byte) (int, error) {
	if !d.startRead() {
		return 0, http.ErrBodyReadAfterClose
	}
	defer d.finishRead()
	n, err := d.decoder.Read(p)
	if err == io.EOF {
		header.DeleteDigests(d.trailers)
	}
	return n, err
}

// startRead begins a Read, and reports whether it may begin.
func (d *decodedRequest) startRead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != decoderIdle {
		return false
	}
	d.state = decoderReading
	return true
}

// finishRead ends a Read, and frees the decoder if release was called meanwhile.
func (d *decodedRequest) finishRead() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == decoderReleasing {
		d.state = decoderReleased
		d.decoder.Close()
		return
	}
	d.state = decoderIdle
}

// Close closes the encoded body, so that a Read that waits for it returns, and frees the decoder.
func (d *decodedRequest) Close() error {
	d.release()
	return d.body.Close()
}

// release frees the decoder. If a Read is under way, that Read frees it.
func (d *decodedRequest) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.state {
	case decoderIdle:
		d.state = decoderReleased
		d.decoder.Close()
	case decoderReading:
		d.state = decoderReleasing
	}
}
