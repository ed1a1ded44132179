package http1

import (
	"io"
	"strconv"
)

// chunkHeader is room for the line with a chunk's length.
const chunkHeader = 8

// sendChunks sends each piece of the body as it is read.
func (u *upload) sendChunks() error {
	for {
		piece, err := u.readChunk(u.buf)
		if len(piece) > 0 {
			if _, err := u.conn.Write(piece); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readChunk reads the next piece of the body into buf, and returns it as a chunk. The end of the body is returned with
// io.EOF, behind the last piece if that was received with it.
func (u *upload) readChunk(buf []byte) (piece []byte, err error) {
	n, err := u.Read(buf[chunkHeader : len(buf)-2])
	if n > 0 {
		piece = chunk(buf, n)
	}
	if err == io.EOF {
		u.startLast()
		piece = u.appendEnd(piece)
	}
	return piece, err
}

// chunk returns the chunk of the n bytes that begin at buf[chunkHeader].
func chunk(buf []byte, n int) []byte {
	size := strconv.AppendInt(nil, int64(n), 16)
	start := chunkHeader - len(size) - 2
	copy(buf[start:], size)
	buf[chunkHeader-2], buf[chunkHeader-1] = '\r', '\n'
	buf[chunkHeader+n], buf[chunkHeader+n+1] = '\r', '\n'
	return buf[start : chunkHeader+n+2]
}

// appendEnd appends the end of the body to b. It leaves out what is no field, as net/http does: the body has been sent.
func (u *upload) appendEnd(b []byte) []byte {
	b = append(b, "0\r\n"...)
	for name, values := range u.request.Trailer {
		for _, value := range values {
			if with, err := appendField(b, name, value); err == nil {
				b = with
			}
		}
	}
	return append(b, "\r\n"...)
}
