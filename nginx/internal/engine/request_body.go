package engine

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// readBody reads the body of a request ahead for $request_body, where the configuration has that
// variable: as with nginx it has a value if the whole body fits into client_body_buffer_size. What
// is larger is streamed, as is any body with "proxy_request_buffering off". A client that stalls
// is waited for as long as client_body_timeout says; the proxy meets that failure as its own.
func (x *exchange) readBody(w http.ResponseWriter) {
	buffers, body := &x.level.proxy.buffers, x.HTTP.Body
	if !x.engine.readsBody || buffers.streamed || x.bodyRead || body == nil || body == http.NoBody {
		return
	}
	x.bodyRead = true
	read, err := readAhead(w, body, int(buffers.requestMemory), x.level.bodyTimeout)
	rest := io.Reader(body)
	switch {
	case err == io.EOF && int64(len(read)) <= buffers.requestMemory:
		x.RequestBody = string(read)
	case err != nil && err != io.EOF:
		rest = failedReader{err}
	}
	x.HTTP.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), body}
}

// readAhead reads up to one byte more than limit. Each read of it may take as long as timeout.
func readAhead(w http.ResponseWriter, body io.Reader, limit int, timeout time.Duration) (read []byte, err error) {
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	piece := make([]byte, min(limit+1, 4<<10))
	for err == nil && len(read) <= limit {
		_ = rc.SetReadDeadline(time.Now().Add(timeout)) // a subrequest has no connection
		var n int
		n, err = body.Read(piece[:min(len(piece), limit+1-len(read))])
		read = append(read, piece[:n]...)
	}
	return read, err
}

// failedReader is the end of a body that can't be read.
type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }
