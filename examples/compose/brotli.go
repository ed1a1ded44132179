package compose

import (
	"github.com/andybalholm/brotli"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// Brotli returns a filter that compresses responses by Brotli, and by zstd or gzip for clients that do not accept it. level is
// from 0 (fastest) to 11 (smallest); 4 costs about as much as gzip's 6.
func Brotli(level int) (culvert.Filter, error) {
	return filters.Compress(filters.CompressOptions{
		Encoders: []filters.Encoder{{Name: "br", New: func() filters.EncodingWriter { return brotli.NewWriterLevel(nil, level) }}},
	})
}
