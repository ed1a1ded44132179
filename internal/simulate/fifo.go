package simulate

// fifo is a queue of bytes that reuses its memory.
type fifo struct {
	room []byte
	from int // where the first byte is that was not taken
}

// len returns how many bytes there are.
func (f *fifo) len() int { return len(f.room) - f.from }

// push appends p.
func (f *fifo) push(p []byte) {
	if len(f.room)+len(p) > cap(f.room) && f.from >= f.len() {
		f.room = f.room[:copy(f.room, f.room[f.from:])]
		f.from = 0
	}
	f.room = append(f.room, p...)
}

// take moves at most n of the first bytes to p.
func (f *fifo) take(p []byte, n int) int {
	n = copy(p, f.room[f.from:f.from+n])
	if f.from += n; f.from == len(f.room) {
		f.room, f.from = f.room[:0], 0
	}
	return n
}
