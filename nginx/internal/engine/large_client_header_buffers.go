package engine

import "github.com/culvert-go/culvert/nginx/conf"

// smallHeaderBuffer is client_header_buffer_size's default: what fits into it needs no large buffer.
const smallHeaderBuffer = 1 << 10

// largeClientHeaderBuffers compiles "large_client_header_buffers number size", which bounds a
// request's line by one buffer, and its header by all of them. The default server's value applies,
// since the server is not known before the header is read.
func largeClientHeaderBuffers(_ *compiler, l *level, d *conf.Directive) error {
	n, ok := conf.Number(d.Args[0])
	size, sizeOK := conf.Size(d.Args[1])
	if !ok || !sizeOK || n == 0 || size == 0 || size > 1<<30/int64(n) {
		return d.Invalid()
	}
	s := connectionSlot.edit(l)
	s.lineBytes, s.headerBytes = max(int(size), smallHeaderBuffer), max(n*int(size), smallHeaderBuffer)
	return nil
}
