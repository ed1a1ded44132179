package filters

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// decodedRequest is the decoded body of a request. Its decoder is freed when the handler has returned, or when the
// Read that is under way by then returns.
type decodedRequest struct {
	body    io.ReadCloser // the encoded one
	decoder io.ReadCloser // the reader's while state is decoderReading

	mu    sync.Mutex // guards state
	state decoderState
}

type decoderState int

const (
	decoderIdle      decoderState = iota
	decoderReading                // a Read is under way
	decoderReleased               // none may begin
	decoderReleasing              // none may begin, and the one that is under way frees the decoder
)

// decodeRequest returns the decoded body of r, nil if there is nothing to decode. ok is false if the encoding is
// unknown.
func decodeRequest(r *http.Request) (_ *decodedRequest, ok bool) {
	encoding := strings.TrimSpace(strings.Join(r.Header["Content-Encoding"], ","))
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil, true
	}
	if !known(encoding) {
		return nil, false
	}
	return &decodedRequest{body: r.Body, decoder: newDecoder(encoding, r.Body)}, true
}

// request returns r with d as its body, of at most max bytes.
func (d *decodedRequest) request(w http.ResponseWriter, r *http.Request, max int64) *http.Request {
	out := *r
	out.Body = http.MaxBytesReader(w, d, max)
	out.ContentLength = -1
	out.Header = r.Header.Clone()
	delete(out.Header, "Content-Encoding")
	delete(out.Header, "Content-Length")
	deleteDigests(out.Header)
	return &out
}

func (d *decodedRequest) Read(p []byte) (int, error) {
	if !d.enter() {
		return 0, http.ErrBodyReadAfterClose
	}
	defer d.leave()
	return d.decoder.Read(p)
}

func (d *decodedRequest) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != decoderIdle {
		return false
	}
	d.state = decoderReading
	return true
}

func (d *decodedRequest) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == decoderReleasing {
		d.state = decoderReleased
		d.decoder.Close()
		return
	}
	d.state = decoderIdle
}

// Close closes the encoded body, which ends a Read that waits for it.
func (d *decodedRequest) Close() error {
	d.release()
	return d.body.Close()
}

// release frees the decoder.
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
