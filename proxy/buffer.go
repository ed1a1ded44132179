package proxy

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/spool"
)

// bufferFor returns how the response's body is buffered, nil if it is not. With nginx's header
// field X-Accel-Buffering an application decides that; the field is not sent to the client.
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
