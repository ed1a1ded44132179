package cgi

import (
	"bufio"
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/clientbody"
)

// CopyBody writes the body of r, and flushes w behind each piece where the next one is awaited: a program sees an upload as it comes.
func CopyBody(w *bufio.Writer, r *http.Request) error {
	return EachPiece(r, func(p []byte) error {
		if _, err := w.Write(p); err != nil {
			return err
		}
		return FlushBefore(w, r)
	})
}

// FlushBefore flushes w before more of the body of r is read, unless that was received: short requests are one write.
func FlushBefore(w *bufio.Writer, r *http.Request) error {
	if clientbody.Ready(r.Body) {
		return nil
	}
	return w.Flush()
}

// EachPiece calls do with each piece of the body of r, which is valid until do returns.
func EachPiece(r *http.Request, do func([]byte) error) error {
	if r.Body == nil {
		return nil
	}
	piece := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(piece)
		if n > 0 {
			if err := do(piece[:n]); err != nil {
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
