package watchtest

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// zipped compresses an answer as one gzip member. A flush ends a block, so that the client
// can read what was written up to it.
type zipped struct {
	http.ResponseWriter
	z *gzip.Writer
}

// zip returns what compresses the answer if the client takes that; end ends the answer.
func (s *Server) zip(w http.ResponseWriter, r *http.Request) (_ http.ResponseWriter, end func()) {
	if !s.o.Gzip || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	z := gzip.NewWriter(w)
	return &zipped{w, z}, func() { _ = z.Close() } // a client that is gone does not miss it
}

func (z *zipped) Write(p []byte) (int, error) { return z.z.Write(p) }

// Flush serves handlers that assert http.Flusher.
func (z *zipped) Flush() { _ = z.FlushError() }

// FlushError serves http.ResponseController.
func (z *zipped) FlushError() error {
	if err := z.z.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}
