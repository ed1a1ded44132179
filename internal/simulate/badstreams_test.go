package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestBadField: the simulated clients know which of their header sections end a connection, however they are cut.
func TestBadField(t *testing.T) {
	ends := 0
	for _, b := range badStreams {
		for size := range 60 { // 0: one frame
			var wire bytes.Buffer
			f := &frameConn{plan: &FramesPlan{Split: size}, framer: http2.NewFramer(&wire, &wire)}
			f.encoder = hpack.NewEncoder(&f.block)
			f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			f.writeHeader(1, b.change(badFields("http", "GET", fmt.Sprint("/", unknownToken))), true)
			_, err := f.framer.ReadFrame()
			var connection http2.ConnectionError
			if errors.As(err, &connection) != f.hasSpoilt() {
				t.Errorf("%s, in pieces of %d: the connection is expected to end: %v; %v", b.name, size, f.hasSpoilt(), err)
			}
			if f.hasSpoilt() {
				ends++
			}
		}
	}
	if ends == 0 || ends == 60*len(badStreams) {
		t.Errorf("%d sections end a connection", ends)
	}
}
