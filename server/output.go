package server

import (
	"context"
	"net"
	"strconv"
	"sync"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// output is the part of a response that was not sent yet: at first room for the beginning of the header, then the
// header's fields, and the body behind them; later the body alone.
type output struct {
	pooled *[outSize]byte
	buf    []byte
	start  int // of what is sent
	bodyAt int
}

const (
	outSize = 8 << 10
	// frontRoom is for the status line and the fields that the server adds, in front of the handler's.
	frontRoom = 256
	// lineRoom is for the line of a chunk, in front of its content.
	lineRoom = 18
	// tailRoom is for the line of a chunk between header and content, for the end of a chunk and for the last chunk.
	tailRoom = lineRoom + 2 + 5
)

var outputs = sync.Pool{New: func() any { return new([outSize]byte) }}

// begin takes a buffer, with room for the beginning of the header.
func (o *output) begin() {
	if o.pooled == nil {
		o.pooled = outputs.Get().(*[outSize]byte)
	}
	o.buf = o.pooled[:frontRoom]
	o.start, o.bodyAt = frontRoom, frontRoom
}

func (o *output) free() {
	if o.pooled != nil {
		outputs.Put(o.pooled)
	}
	*o = output{}
}

// room returns how much of the body can be appended.
func (o *output) room() int { return max(cap(o.buf)-len(o.buf)-tailRoom, 0) }

func (o *output) append(p []byte) { o.buf = append(o.buf, p...) }

// body returns what is buffered of it.
func (o *output) body() []byte { return o.buf[o.bodyAt:] }

// putFront puts the beginning of the header in front of the fields.
func (o *output) putFront(front []byte) {
	if len(front) <= frontRoom {
		o.start = frontRoom - len(front)
		copy(o.buf[o.start:], front)
		return
	}
	o.bodyAt += len(front) - frontRoom
	o.buf = append(append(make([]byte, 0, len(front)+len(o.buf)+tailRoom), front...), o.buf[frontRoom:]...)
	o.start = 0
}

// putHeader puts a whole header in the place of the fields.
func (o *output) putHeader(header []byte) {
	if len(header) <= o.bodyAt {
		o.start = o.bodyAt - len(header)
		copy(o.buf[o.start:], header)
		return
	}
	o.buf = append(append(make([]byte, 0, len(header)+len(o.body())+tailRoom), header...), o.body()...)
	o.start, o.bodyAt = 0, len(header)
}

// chunk makes what is buffered of the body, and n bytes that follow it, a chunk, but for its end.
func (o *output) chunk(n int) {
	var line [lineRoom]byte
	size := append(strconv.AppendInt(line[:0], int64(len(o.body())+n), 16), "\r\n"...)
	if o.start == o.bodyAt { // nothing stands before the content
		o.start -= len(size)
		copy(o.buf[o.start:], size)
		return
	}
	end := len(o.buf)
	o.buf = append(o.buf, size...) // for its length
	copy(o.buf[o.bodyAt+len(size):], o.buf[o.bodyAt:end])
	copy(o.buf[o.bodyAt:], size)
	o.bodyAt += len(size)
}

// reset empties o when it was sent.
func (o *output) reset() {
	o.buf = o.buf[:lineRoom]
	o.start, o.bodyAt = lineRoom, lineRoom
}

// send writes what is buffered to the client, with p behind it; last ends the body. The header is committed, and the caller
// holds w.mu.
func (w *writer) send(p []byte, last bool) {
	o := &w.out
	content := len(o.body()) + len(p)
	if w.chunked && content > 0 {
		o.chunk(len(p))
	}
	var tail []byte
	if p == nil {
		tail = o.buf
	}
	if w.chunked && content > 0 {
		tail = append(tail, "\r\n"...)
	}
	if w.chunked && last {
		tail = w.appendLastChunk(tail)
	}
	if p == nil {
		o.buf = tail
		w.write(o.buf[o.start:])
	} else {
		w.writeAll(o.buf[o.start:], p, tail)
	}
	o.reset()
}

// write writes to the connection.
func (w *writer) write(p []byte) {
	if w.err == nil && len(p) > 0 {
		w.x.c.boundWrite()
		_, err := w.x.c.rwc.Write(p)
		w.note(err)
	}
}

// writeAll writes pieces: over a socket with one system call (writev). Elsewhere each piece is a write of its own, over TLS
// a record, so that short ones are joined: TLS copies them anyway.
func (w *writer) writeAll(pieces ...[]byte) {
	if w.err != nil {
		return
	}
	if !w.x.c.plain && w.writeJoined(pieces) {
		return
	}
	v := vectors.Get().(*vector)
	v.pieces = v.memory[:0]
	for _, p := range pieces {
		if len(p) > 0 {
			v.pieces = append(v.pieces, p)
		}
	}
	w.x.c.boundWrite()
	_, err := v.pieces.WriteTo(w.x.c.rwc)
	*v = vector{}
	vectors.Put(v)
	w.note(err)
}

// vector is the memory of a writeAll.
type vector struct {
	pieces net.Buffers
	memory [3][]byte // for pieces
}

var vectors = sync.Pool{New: func() any { return new(vector) }}

// writeJoined writes pieces as one. It reports false if they do not fit into a buffer.
func (w *writer) writeJoined(pieces [][]byte) bool {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	if n > len(buf) {
		return false
	}
	joined := buf[:0]
	for _, p := range pieces {
		joined = append(joined, p...)
	}
	w.write(joined)
	return true
}

// note notes the error of a write. It ends the request's context: the handler may ignore errors, and the client may not be
// watched.
func (w *writer) note(err error) {
	if w.err = err; err != nil {
		w.x.ctx.cancel(context.Canceled)
	}
}
