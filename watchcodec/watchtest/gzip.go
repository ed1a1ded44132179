package watchtest

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// zipped compresses a response as one gzip member. A flush ends a block, so that the client can
// read everything written before.
type zipped struct {
	http.ResponseWriter
	z *gzip.Writer
}

// zip returns a writer that compresses the response if the client accepts that; end finishes the
// response.
func (s *Server) zip(w http.ResponseWriter, r *http.Request) (_ http.ResponseWriter, end func()) {
	if !s.o.Gzip || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	z := gzip.NewWriter(w)
	return &zipped{w, z}, func() { _ = z.Close() } // it fails only if the client has disconnected
}

func (z *zipped) Write(p []byte) (int, error) { return z.z.Write(p) }

// Flush is for handlers that assert http.Flusher.
func (z *zipped) Flush() { _ = z.FlushError() }

// FlushError is for http.ResponseController.
func (z *zipped) FlushError() error {
	if err := z.z.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}
