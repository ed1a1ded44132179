package simulate

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// encoder is a writer of a content coding. Encoders are used again by later histories: making one costs more than a
// small history.
type encoder interface {
	io.WriteCloser
	Reset(io.Writer)
}

var encoders = map[string]*sync.Pool{
	"gzip": {New: func() any { return gzip.NewWriter(nil) }},
	"zstd": {New: func() any {
		// With this concurrency it starts no goroutine, which would belong to the bubble it began in.
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			panic(err)
		}
		return w
	}},
}

// encoded encodes a content; "br" stands for what no filter knows, and is left as it is.
func encoded(coding string, plain body) body {
	pool := encoders[coding]
	if pool == nil {
		return plain
	}
	w := pool.Get().(encoder)
	defer pool.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(plain.Bytes(0, plain.Size()))
	_ = w.Close()
	return rawBody(b.Bytes())
}
