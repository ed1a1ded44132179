// Package spool holds bodies: in memory as far as that may go, then in a
// temporary file.
package spool

import (
	"errors"
	"io"
	"os"
	"sync"
)

// ErrFull is what Write returns when neither memory nor file may take more.
var ErrFull = errors.New("the body is larger than its buffer")

// DiskError is the error of a file that can't be written or read.
type DiskError struct{ Err error }

// Error returns the cause's text.
func (e *DiskError) Error() string { return "body on disk: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DiskError) Unwrap() error { return e.Err }

// Options bound a Spool.
type Options struct {
	// Memory is how many bytes are held in memory.
	Memory int64
	// Disk is how many more bytes are held in a temporary file; 0 means none.
	Disk int64
	// Dir is where the file is made; "" means os.TempDir.
	Dir string
}

// Spool takes bytes at its end and gives them out again from anywhere. One
// writer and any number of readers may use it at the same time.
type Spool struct {
	o      Options
	mu     sync.Mutex
	grown  sync.Cond
	memory []byte
	file   *os.File // nil: nothing has gone there
	onDisk int64
	end    error // io.EOF or what went wrong, once there is an end
}

// New returns an empty spool. Close it.
func New(o Options) *Spool {
	s := &Spool{o: o}
	s.grown.L = &s.mu
	return s
}

// Write appends p, all of it or nothing.
func (s *Spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inMemory := min(int64(len(p)), s.o.Memory-int64(len(s.memory)))
	if s.onDisk > 0 {
		inMemory = 0
	}
	rest := p[inMemory:]
	if int64(len(rest)) > s.o.Disk-s.onDisk {
		return 0, ErrFull
	}
	if err := s.writeDisk(rest); err != nil {
		return 0, err
	}
	s.memory = append(s.memory, p[:inMemory]...)
	s.onDisk += int64(len(rest))
	s.grown.Broadcast()
	return len(p), nil
}

// writeDisk writes behind what is in the file. The file has no name any more as
// soon as it is open, where the system allows that, so nothing is left behind.
func (s *Spool) writeDisk(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.o.Dir, "culvert-body-*")
		if err != nil {
			return &DiskError{err}
		}
		_ = os.Remove(f.Name()) // fails on systems that keep names of open files; Close removes it there
		s.file = f
	}
	if _, err := s.file.WriteAt(p, s.onDisk); err != nil {
		return &DiskError{err}
	}
	return nil
}

// End says that nothing more comes: err is io.EOF, or why not.
func (s *Spool) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = err
	}
	s.grown.Broadcast()
}

// Len returns how many bytes are held.
func (s *Spool) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.memory)) + s.onDisk
}

// Close frees memory and file. Readers fail afterwards.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = os.ErrClosed
	s.memory, s.onDisk = nil, 0
	s.grown.Broadcast()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	err := f.Close()
	_ = os.Remove(f.Name())
	return err
}

// Reader returns a reader from the beginning. It waits for bytes that are not
// there yet.
func (s *Spool) Reader() io.Reader { return &reader{s: s} }

type reader struct {
	s  *Spool
	at int64
}

func (r *reader) Read(p []byte) (int, error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		held := int64(len(s.memory))
		switch {
		case s.end == os.ErrClosed:
			return 0, os.ErrClosed
		case r.at < held:
			n := copy(p, s.memory[r.at:])
			r.at += int64(n)
			return n, nil
		case r.at < held+s.onDisk:
			n, err := s.file.ReadAt(p[:min(int64(len(p)), held+s.onDisk-r.at)], r.at-held)
			r.at += int64(n)
			if n > 0 {
				return n, nil
			}
			return 0, &DiskError{err}
		case s.end != nil:
			return 0, s.end
		}
		s.grown.Wait()
	}
}
