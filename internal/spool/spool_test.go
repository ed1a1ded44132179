package spool_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/spool"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// Each reader reads what was written, from memory and from disk.
func TestMemoryAndDisk(t *testing.T) {
	leaktest.Check(t)
	for _, size := range []int{0, 1, 9, 10, 11, 1000, 100000} {
		dir := t.TempDir()
		s := spool.New(spool.Options{Memory: 10, Disk: 1 << 20, Dir: dir})
		want := wiretest.Pattern(size)
		if n, err := io.Copy(s, iotest.HalfReader(bytes.NewReader(want))); n != int64(size) || err != nil {
			t.Fatalf("copied %d: %v", n, err)
		}
		s.End(io.EOF)
		if n := s.Len(); n != int64(size) {
			t.Errorf("length %d, want %d", n, size)
		}
		for range 2 {
			got, err := io.ReadAll(iotest.OneByteReader(s.Reader()))
			if err != nil {
				t.Fatal(err)
			}
			wiretest.SameBytes(t, "content", got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%v is left", left)
		}
	}
}

func TestFull(t *testing.T) {
	leaktest.Check(t)
	for _, o := range []spool.Options{{Memory: 10}, {Memory: 4, Disk: 6}} {
		s := spool.New(o)
		defer s.Close()
		if n, err := s.Write(make([]byte, 10)); n != 10 || err != nil {
			t.Errorf("%+v: wrote %d of 10: %v", o, n, err)
		}
		if n, err := s.Write(make([]byte, 1)); n != 0 || err != spool.ErrFull {
			t.Errorf("%+v: wrote %d more: %v", o, n, err)
		}
		if n := s.Len(); n != 10 {
			t.Errorf("%+v: holds %d", o, n)
		}
	}
}

// A reader that has read all waits for more, and returns the error of End.
func TestReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spool.New(spool.Options{Memory: 100})
		broken := errors.New("broken")
		var got []byte
		var err error
		var reading sync.WaitGroup
		reading.Go(func() { got, err = io.ReadAll(s.Reader()) })
		for _, piece := range []string{"one ", "two ", "three"} {
			synctest.Wait()
			s.Write([]byte(piece))
		}
		synctest.Wait()
		s.End(broken)
		reading.Wait()
		if string(got) != "one two three" || err != broken {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestCloseEndsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spool.New(spool.Options{Memory: 100})
		failed := make(chan error)
		go func() {
			_, err := s.Reader().Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		s.Close()
		if err := <-failed; err != os.ErrClosed {
			t.Errorf("error %v", err)
		}
	})
}

func TestBadDirectory(t *testing.T) {
	s := spool.New(spool.Options{Disk: 10, Dir: t.TempDir() + "/missing"})
	defer s.Close()
	if n, err := s.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("wrote %d, %v", n, err)
	}
}

// A file is made in a directory that may have to be made before, and keeps its name as long as Options.Name says.
func TestNames(t *testing.T) {
	leaktest.Check(t)
	for _, test := range []struct {
		name               spool.Naming
		discarded          bool
		whileOpen, forGood bool
	}{
		{spool.Unnamed, false, false, false},
		{spool.NamedUntilClose, false, true, false},
		{spool.Kept, false, true, true},
		{spool.Kept, true, true, false},
	} {
		dir := filepath.Join(t.TempDir(), "a", "b")
		s := spool.New(spool.Options{Disk: 100, Dir: dir, MakeDir: true, Name: test.name})
		if _, err := os.Stat(dir); s.File() != "" || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: file %q and %v before there is content", test, s.File(), err)
		}
		if _, err := s.Write([]byte("content")); err != nil {
			t.Fatal(err)
		}
		file := s.File()
		if filepath.Dir(file) != dir || s.Text() != "" {
			t.Errorf("%+v: file %q, text %q", test, file, s.Text())
		}
		if content, err := os.ReadFile(file); (err == nil) != test.whileOpen || test.whileOpen && string(content) != "content" {
			t.Errorf("%+v: the file has %q, %v", test, content, err)
		}
		if test.discarded {
			s.Discard()
		}
		s.Close()
		if _, err := os.Stat(file); (err == nil) != test.forGood {
			t.Errorf("%+v: behind Close: %v", test, err)
		}
	}
}

func TestTextAndEmptyFile(t *testing.T) {
	s := spool.New(spool.Options{Memory: 10, Disk: 10, Dir: t.TempDir(), Name: spool.NamedUntilClose})
	defer s.Close()
	s.Write([]byte("short"))
	if s.Text() != "short" || s.File() != "" {
		t.Errorf("text %q, file %q", s.Text(), s.File())
	}
	if err := s.CreateFile(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(s.File()); err != nil || len(content) > 0 {
		t.Errorf("the file has %q, %v", content, err)
	}
}
