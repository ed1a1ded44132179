package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Errors of chunked bodies.
var (
	errChunk      = errors.New("http1: malformed chunked body")
	errChunkLine  = errors.New("http1: a chunk's line is too long")
	errChunkWaste = errors.New("http1: a chunked body is mostly chunk extensions")
)

// maxWaste bounds the bytes of chunk lines that stand in no proportion to the content, as net/http does: 16 bytes are
// allowed for each chunk, and two for each byte of content.
const maxWaste = 16 << 10

// chunkReader reads the chunks of a body, which end before its trailers. It accepts what net/http accepts. A strict one
// also refuses blanks behind a chunk's size and control characters in chunk extensions (RFC 9112 section 7.1).
type chunkReader struct {
	strict bool
	left   uint64 // of the chunk
	within bool   // a chunk has begun whose end of line was not read
	last   bool   // the last chunk was read
	waste  int64
}

// read reads content, up to the size of p and as much as does not have to be waited for. The error behind the last chunk
// is io.EOF. An error of r, a timeout perhaps, loses nothing.
func (c *chunkReader) read(r *bufio.Reader, p []byte) (n int, err error) {
	for !c.last {
		if c.left == 0 {
			if n > 0 && !c.ready(r) {
				return n, nil
			}
			if err := c.next(r); err != nil {
				return n, err
			}
			continue
		}
		if n == len(p) {
			return n, nil
		}
		m, err := r.Read(p[n:][:min(uint64(len(p)-n), c.left)])
		n += m
		if c.left -= uint64(m); err != nil {
			return n, unexpected(err)
		}
		if c.strict && c.left > 0 && r.Buffered() == 0 { // the rest of a request's chunk may be long in coming
			return n, nil
		}
	}
	return n, io.EOF
}

// ready reports whether read returns at once: the next byte of content was received, or the whole end of the body, or
// what is malformed. A chunk's line alone is not enough.
func (c *chunkReader) ready(r *bufio.Reader) bool {
	b, _ := r.Peek(r.Buffered())
	switch {
	case c.left > 0:
		return len(b) > 0
	case c.last:
		return endReceived(b)
	case c.within && len(b) < 2:
		return false
	case c.within && (b[0] != '\r' || b[1] != '\n'):
		return true
	case c.within:
		b = b[2:]
	}
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return i >= 0 || r.Buffered() == r.Size()
	}
	size, err := c.size(b[:i-1])
	if err != nil || size > 0 {
		return err != nil || len(b) > i+1
	}
	return endReceived(b[i+1:])
}

// endReceived reports whether what stands behind the last chunk was received: an empty line, perhaps behind trailers.
func endReceived(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\r\n")) || bytes.Contains(b, []byte("\r\n\r\n"))
}

// next reads the end of a chunk and the line of the one behind it.
func (c *chunkReader) next(r *bufio.Reader) error {
	if c.within {
		b, err := r.Peek(2)
		if err != nil {
			return unexpected(err)
		}
		if b[0] != '\r' || b[1] != '\n' {
			return errChunk
		}
		_, _ = r.Discard(2)
		c.within = false
	}
	line, err := peekLine(r)
	if err != nil {
		return err
	}
	size, err := c.size(line[:len(line)-2])
	if err != nil {
		return err
	}
	c.waste = max(c.waste+int64(len(line))-16-2*int64(min(size, 1<<40)), 0)
	if c.waste > maxWaste {
		return errChunkWaste
	}
	_, _ = r.Discard(len(line))
	c.left, c.within, c.last = size, size > 0, size == 0
	return nil
}

// peekLine returns the next line, which ends with CR LF and has no other CR: a bare LF does not end a chunk's line (RFC
// 9112 section 7.1; errata 7633).
func peekLine(r *bufio.Reader) ([]byte, error) {
	for n := 1; ; {
		b, err := r.Peek(max(n, r.Buffered()))
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			if bytes.IndexByte(b[:i+1], '\r') != i-1 || i == 0 {
				return nil, errChunk
			}
			return b[:i+1], nil
		}
		switch {
		case len(b) >= r.Size():
			return nil, errChunkLine
		case err != nil:
			return nil, unexpected(err)
		}
		n = len(b) + 1
	}
}

// size returns the size that a chunk's line without its end begins with.
func (c *chunkReader) size(line []byte) (size uint64, err error) {
	digits, extension, _ := bytes.Cut(line, []byte{';'})
	switch {
	case !c.strict && len(digits) == len(line):
		digits = bytes.TrimRight(digits, " \t")
	case c.strict && controls(extension):
		return 0, errChunk
	}
	if len(digits) == 0 || len(digits) > 16 {
		return 0, errChunk
	}
	for _, d := range digits {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, errChunk
		}
		size = size<<4 | uint64(d)
	}
	if c.strict && size > 1<<62 {
		return 0, errChunk
	}
	return size, nil
}

// controls reports whether b has a control character that no field value may have.
func controls(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}
