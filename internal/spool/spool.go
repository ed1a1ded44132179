// Package spool buffers bodies: in memory up to a limit, and what exceeds it in a
// temporary file.
package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// ErrFull is returned by Write when p exceeds what memory and file may hold.
var ErrFull = errors.New("the body is larger than its buffer")

// DiskError is a failure to create, write or read the temporary file.
type DiskError struct{ Err error }

// Error returns "body on disk: " and the text of the cause.
func (e *DiskError) Error() string { return "body on disk: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DiskError) Unwrap() error { return e.Err }

// Options configures a Spool.
type Options struct {
	// Memory is the maximum number of bytes held in memory; 0 means none.
	Memory int64
	// Disk is the maximum number of further bytes held in a temporary file; 0 means none.
	Disk int64
	// Dir is the directory of the file; "" means os.TempDir().
	Dir string
	// MakeDir has Dir created, for the process's user alone, if it is not there when the file is.
	MakeDir bool
	// Name says how long the file has its name.
	Name Naming
}

// Naming is how long a temporary file has its name.
type Naming int

const (
	// Unnamed files have none while they are in use, where the system allows that, so that they do not outlive the process.
	Unnamed Naming = iota
	// NamedUntilClose are the files whose names Close removes.
	NamedUntilClose
	// Kept are the files that only Discard removes.
	Kept
)

// Spool is a buffer that is written at its end and read from its beginning by any number of
// readers. One writer and its readers may use it concurrently.
type Spool struct {
	o      Options
	mu     sync.Mutex
	grown  sync.Cond
	memory []byte
	file   *os.File // nil before the first byte on disk
	onDisk int64
	end    error // io.EOF, or why the content ends early; nil before End and Close
}

// New returns an empty Spool. The caller must close it.
func New(o Options) *Spool {
	s := &Spool{o: o}
	s.grown.L = &s.mu
	return s
}

// Write appends all of p or, if it returns an error, nothing: ErrFull or a *DiskError.
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

// writeDisk appends p to the file.
func (s *Spool) writeDisk(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if err := s.createFile(); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(p, s.onDisk); err != nil {
		return &DiskError{err}
	}
	return nil
}

// CreateFile creates the file before there is anything to be written to it. The error is a *DiskError.
func (s *Spool) CreateFile() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.createFile()
}

// createFile creates the file if there is none. The caller holds s.mu.
func (s *Spool) createFile() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.o.Dir, "culvert-body-*")
	if s.o.MakeDir && errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(s.o.Dir, 0o700); err == nil {
			f, err = os.CreateTemp(s.o.Dir, "culvert-body-*")
		}
	}
	if err != nil {
		return &DiskError{err}
	}
	if s.o.Name == Unnamed {
		_ = os.Remove(f.Name()) // fails on systems that keep names of open files; Close removes it there
	}
	s.file = f
	return nil
}

// File returns the name of the file, which an unnamed one has had; "" if there is none.
func (s *Spool) File() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return ""
	}
	return s.file.Name()
}

// Text returns the content if all of it is in memory, and else "".
func (s *Spool) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return ""
	}
	return string(s.memory)
}

// End marks the end of the content. After the last byte Read returns err: io.EOF, or why
// the content is not complete. Only the first call has an effect.
func (s *Spool) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = err
	}
	s.grown.Broadcast()
}

// Len returns the number of bytes held.
func (s *Spool) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.memory)) + s.onDisk
}

// Close frees the memory and the file. Readers fail with os.ErrClosed from then on.
func (s *Spool) Close() error { return s.close(s.o.Name == Kept) }

// Discard is Close that keeps no file: what is in it is not the whole content.
func (s *Spool) Discard() error { return s.close(false) }

func (s *Spool) close(kept bool) error {
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
	if !kept {
		_ = os.Remove(f.Name())
	}
	return err
}

// Reader returns a reader of the content from its beginning. Its Read waits for bytes that
// have not been written yet.
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
