package server

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// ReadFrom implements io.ReaderFrom. The kernel moves the bytes of a file or of another socket (sendfile, splice), where the
// framing permits: the length is declared, or the response ends with the connection.
func (w *writer) ReadFrom(src io.Reader) (n int64, err error) {
	limited, socket := source(src)
	tcp, plain := w.x.c.rwc.(*net.TCPConn)
	if limited == nil || !plain {
		return w.copyFrom(src)
	}
	if !w.explicit(socket) {
		// The header is not sent before the source has been read from: the handler may still respond with an error.
		n, err = w.copyFrom(io.LimitReader(src, sniffLen))
		if err != nil || n < sniffLen {
			return n, err
		}
	}
	moved, ok, err := w.move(tcp, limited)
	if n += moved; ok || err != nil {
		return n, err
	}
	copied, err := w.copyFrom(src)
	return n + copied, err
}

// source returns src if the kernel can move its bytes; nil if not. socket reports whether it is a socket.
func source(src io.Reader) (limited *io.LimitedReader, socket bool) {
	limited, ok := src.(*io.LimitedReader)
	if !ok {
		limited = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	if _, ok := limited.R.(syscall.Conn); !ok { // also what os and net wrap a file or a socket with
		return nil, false
	}
	_, file := limited.R.(interface{ Stat() (os.FileInfo, error) })
	return limited, !file
}

// explicit reports whether the header was sent, or can be before a socket is read from: the handler has called WriteHeader,
// with a type.
func (w *writer) explicit(socket bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed || socket && w.frozen && (w.set.contentType || w.set.contentEncoding)
}

// move moves bytes of src to the socket. It reports false if the framing does not permit it.
func (w *writer) move(tcp *net.TCPConn, src *io.LimitedReader) (n int64, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if send, err := w.startWrite(0); send && err != nil {
		return 0, false, err
	}
	if !bodyAllowed(w.status) || w.head {
		return 0, false, nil
	}
	if w.flush(); w.chunked || w.err != nil {
		return 0, false, w.err
	}
	piece := io.LimitedReader{R: src.R, N: src.N}
	if w.declared != -1 {
		piece.N = min(piece.N, w.declared-w.written)
	}
	w.x.c.boundWrite()
	n, err = tcp.ReadFrom(&piece)
	if err != nil && w.x.c.writesEnded(w.x) {
		w.note(err) // it is the write's, not the source's
	}
	w.written += n
	src.N -= n
	if err == nil && piece.N == 0 && src.N > 0 && w.declared != -1 {
		return n, false, nil // is there more than was declared?
	}
	return n, true, err
}

// copyFrom copies through a buffer. A read of src may send a 100 (Continue), so w.mu is not held.
func (w *writer) copyFrom(src io.Reader) (n int64, err error) {
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for {
		m, readErr := src.Read(buf)
		if m > 0 {
			written, err := w.Write(buf[:m])
			if n += int64(written); err != nil {
				return n, err
			}
		}
		if readErr == io.EOF {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
}
