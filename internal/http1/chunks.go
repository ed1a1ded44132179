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
		n, err := u.Read(u.buf[chunkHeader : len(u.buf)-2])
		if n > 0 {
			if _, err := u.conn.Write(chunk(u.buf, n)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return u.sendTrailers()
		}
		if err != nil {
			return err
		}
	}
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

// sendTrailers sends the end of the body. It leaves out what is no field, as net/http does: the body has been sent.
func (u *upload) sendTrailers() error {
	u.startLast()
	b := append(u.buf[:0], "0\r\n"...)
	for name, values := range u.request.Trailer {
		for _, value := range values {
			if with, err := appendField(b, name, value); err == nil {
				b = with
			}
		}
	}
	_, err := u.conn.Write(append(b, "\r\n"...))
	return err
}
