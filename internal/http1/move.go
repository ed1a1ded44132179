package http1

import "io"

// MoveFrom is the length from which on a body is moved by the kernel: below that it costs more than
// to copy it.
const MoveFrom = 64 << 10

// maxPiece bounds what is moved at once, and with it what a client must take within its time.
const maxPiece = 128 << 10

// Movable reports whether the kernel can move the rest of the body to another socket: it is long,
// its length is known, it is received in the clear, and the system does not refuse it.
func (b *Body) Movable() bool {
	return canMove && !b.chunked && b.left >= MoveFrom && b.err == nil && b.conn.Raw() != nil && spliceAllowed()
}

// Move moves the body to w, the writer of a response over a plain socket, where it does not have to be
// seen (splice(2), by net.TCPConn.ReadFrom). before is called before each piece that is written, after when w has accepted
// one of so many bytes; its error is one of w's.
// read is the failure of this side, write that of w's: since no more is moved than was received, the one
// is never taken for the other, and nothing is left between the two.
func (b *Body) Move(w io.ReaderFrom, before func(), after func(n int64) error) (n int64, read, write error) {
	if held := int64(b.conn.R.Buffered()); held > 0 {
		before()
		m, err := w.ReadFrom(io.LimitReader(b.conn.R, min(held, b.left)))
		if n = m; err != nil {
			return n, nil, err
		}
		b.took(m)
		if err := after(m); err != nil {
			return n, nil, err
		}
	}
	piece := io.LimitedReader{R: b.conn.Raw()}
	for b.left > 0 {
		if piece.N, read = b.await(); read != nil {
			return n, read, nil
		}
		before()
		var src io.Reader = &piece
		if piece.N == 1 {
			// It may stand behind urgent data of TCP, which splice(2) does not pass: a read does.
			src = struct{ io.Reader }{src}
		}
		m, err := w.ReadFrom(src)
		b.conn.received.Add(m)
		n += m
		if b.took(m); err != nil {
			return n, nil, err
		}
		if err := after(m); err != nil {
			return n, nil, err
		}
	}
	return n, nil, nil
}

// await waits for more of the body and returns how much of it was received.
func (b *Body) await() (int64, error) {
	b.conn.extendRead()
	n, err := b.conn.peek.available()
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		b.err = err
		return 0, err
	}
	b.conn.stopReadTimeout() // what was received is read at the client's pace
	return min(n, b.left, maxPiece), nil
}
