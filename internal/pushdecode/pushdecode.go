// Package pushdecode lets what reads be written to: a decoder behind an http.ResponseWriter, for instance.
package pushdecode

import (
	"errors"
	"io"
	"iter"
)

// Writer passes what is written to it to a function that reads. The function does not run beside its caller: it is a
// coroutine, which runs within Write and Close until it needs more input. So when Write returns, the function has done what
// it could with the input, and a panic of it reaches the caller of Write or Close.
//
// Stop must be called in the end. The methods must not be called concurrently.
type Writer struct {
	in     []byte // written, and not read yet
	closed bool
	resume func() (struct{}, bool) // runs the function until it needs more input or has ended
	stop   func()
	ended  bool
	err    error // that the function has returned; errUnfinished if it has not
}

// errUnfinished is the error of a function that was stopped before it was called, or that has panicked.
var errUnfinished = errors.New("pushdecode: the reading function has not returned")

// NewWriter returns a Writer for read, which is called with the source of the input at the first Write or at Close.
func NewWriter(read func(src io.Reader) error) *Writer {
	w := &Writer{err: errUnfinished}
	w.resume, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() { w.ended = true }()
		w.err = read(&source{w, yield})
	})
	return w
}

// source is the input of the reading function. It yields while there is none.
type source struct {
	w     *Writer
	yield func(struct{}) bool
}

func (s *source) Read(p []byte) (int, error) {
	for len(s.w.in) == 0 {
		if s.w.closed {
			return 0, io.EOF
		}
		if !s.yield(struct{}{}) {
			return 0, io.ErrUnexpectedEOF // stopped
		}
	}
	n := copy(p, s.w.in)
	s.w.in = s.w.in[n:]
	return n, nil
}

// Write returns the error of the reading function if that has ended. If it has ended without an error, Write drops p.
func (w *Writer) Write(p []byte) (int, error) {
	if !w.ended {
		w.in = p
		w.resume()
		w.in = nil
	}
	if w.ended && w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close ends the input, and returns the error of the reading function.
func (w *Writer) Close() error {
	w.closed = true
	if !w.ended {
		w.resume()
	}
	w.Stop()
	return w.err
}

// Stop ends the reading function if it has not ended: its next Read returns io.ErrUnexpectedEOF. It has no effect after
// Close.
func (w *Writer) Stop() {
	w.stop()
	w.ended = true
}
