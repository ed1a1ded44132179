package engine

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// readBody reads the request's body in advance for $request_body, if the configuration uses that
// variable: as in nginx it has a value if the whole body fits into client_body_buffer_size. A
// larger body is streamed, as is any body with "proxy_request_buffering off". client_body_timeout
// bounds the wait for a client that stalls; the proxy handles that failure like one of its own.
func readBody(x *exchange, w http.ResponseWriter) {
	client, body := clientBodySlot.of(x.level), x.HTTP.Body
	if !x.engine.readsBody || x.passSettings().buffers.streamed || x.proxy.bodyRead || body == nil || body == http.NoBody {
		return
	}
	x.proxy.bodyRead = true
	read, err := readAhead(w, body, int(client.memory), client.timeout)
	rest := io.Reader(body)
	switch {
	case err == io.EOF && int64(len(read)) <= client.memory:
		x.RequestBody = string(read)
	case err != nil && err != io.EOF:
		rest = failedReader{err}
	}
	x.HTTP.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), body}
}

// readAhead reads up to one byte more than limit. Each read may take up to timeout.
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

// failedReader ends a body that can't be read.
type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }
