package engine

import "github.com/culvert-go/culvert/nginx/conf"

// largeClientHeaderBuffers compiles "large_client_header_buffers number size", which bounds a
// request's header. The default server's value applies, since the server is not known before the
// header is read.
func largeClientHeaderBuffers(_ *compiler, l *level, d *conf.Directive) error {
	n, ok := conf.Number(d.Args[0])
	size, sizeOK := conf.Size(d.Args[1])
	if !ok || !sizeOK || n == 0 || size == 0 || size > 1<<30/int64(n) {
		return d.Invalid()
	}
	connectionSlot.edit(l).headerBytes = n * int(size)
	return nil
}
