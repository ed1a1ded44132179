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
	return b.options()
}

// options returns b for package spool; nil if b is.
func (b *Buffer) options() *spool.Options {
	if b == nil {
		return nil
	}
	return &spool.Options{Memory: b.Memory, Disk: b.Disk, Dir: b.Dir}
}
