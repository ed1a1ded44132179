package proxy

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/spool"
)

// bufferFor says how the answer's body is buffered, nil for not at all.
// X-Accel-Buffering is nginx's way for an application to decide; it is for the
// gateway alone.
func bufferFor(b *Buffer, resp *http.Response) *spool.Options {
	if b == nil {
		return nil
	}
	off := resp.Header.Get("X-Accel-Buffering") == "no"
	delete(resp.Header, "X-Accel-Buffering")
	if off {
		return nil
	}
	o := spool.Options(*b)
	return &o
}
