package fastcgi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// The types of records, of section 8 of the specification.
const (
	typeBegin  = 1
	typeEnd    = 3
	typeParams = 4
	typeStdin  = 5
	typeStdout = 6
	typeStderr = 7
)

const (
	version   = 1
	responder = 1 // the role
	keepConn  = 1 // the flag
	requestID = 1 // one request a connection at a time
	most      = 65535
)

// writeRecord writes a record of at most 65535 bytes, padded to a multiple of 8.
func writeRecord(w *bufio.Writer, kind byte, content []byte) {
	padding := -len(content) & 7
	w.Write([]byte{version, kind, 0, requestID, byte(len(content) >> 8), byte(len(content)), byte(padding), 0})
	w.Write(content)
	w.Write(make([]byte, padding))
}

// appendParam appends a name and a value. Lengths of 128 and more have four bytes.
func appendParam(b []byte, p cgi.Param) []byte {
	for _, n := range []int{len(p.Name), len(p.Value)} {
		if n < 128 {
			b = append(b, byte(n))
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(n)|1<<31)
		}
	}
	return append(append(b, p.Name...), p.Value...)
}

// stdout reads the content of a response's STDOUT records. stderr is called with each piece of STDERR, and its error ends the
// reading.
type stdout struct {
	b       *bufio.Reader
	stderr  func([]byte) error
	left    int // of the record
	padding int
	closed  bool // the stream has ended, END_REQUEST should follow
	done    bool // END_REQUEST was received
}

// Read implements io.Reader.
func (s *stdout) Read(p []byte) (int, error) {
	for s.left == 0 {
		if s.done {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.b.Read(p[:min(len(p), s.left)])
	s.left -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads to the content of the next STDOUT record.
func (s *stdout) next() error {
	if _, err := s.b.Discard(s.padding); err != nil {
		return unexpected(err)
	}
	s.padding = 0
	var h [8]byte
	if _, err := io.ReadFull(s.b, h[:]); err != nil {
		return err // io.EOF between two records
	}
	length := int(binary.BigEndian.Uint16(h[4:]))
	s.padding = int(h[6])
	switch {
	case h[0] != version:
		return fmt.Errorf("upstream sent unsupported FastCGI protocol version: %d", h[0])
	case h[2] != 0 || h[3] != requestID:
		return errors.New("upstream sent unexpected FastCGI request id")
	case h[1] == typeStdout && length == 0:
		s.closed = true
	case h[1] == typeStdout && s.closed:
		return errors.New("upstream sent FastCGI stdout behind its end")
	case h[1] == typeStdout:
		s.left = length
	case h[1] == typeStderr:
		return s.errors(length)
	case h[1] == typeEnd:
		s.done = true
		_, err := s.b.Discard(length + s.padding)
		s.padding = 0
		return unexpected(err)
	default:
		return fmt.Errorf("upstream sent unexpected FastCGI record: %d", h[1])
	}
	return nil
}

// errors reads a record of STDERR.
func (s *stdout) errors(length int) error {
	text := make([]byte, length)
	if _, err := io.ReadFull(s.b, text); err != nil {
		return unexpected(err)
	}
	if length == 0 {
		return nil
	}
	return s.stderr(text)
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// finish reads to END_REQUEST, which follows the content at once, and reports whether that was received.
func (s *stdout) finish() bool {
	for !s.done && s.left == 0 {
		if s.next() != nil {
			return false
		}
	}
	return s.done
}
