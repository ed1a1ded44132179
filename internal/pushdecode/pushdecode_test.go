package pushdecode_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/pushdecode"
)

// lines returns a Writer that passes each whole line to take, in capitals.
func lines(take func(string)) *pushdecode.Writer {
	return pushdecode.NewWriter(func(src io.Reader) error {
		for r := bufio.NewReader(src); ; {
			line, err := r.ReadString('\n')
			switch {
			case err == nil:
				take(strings.ToUpper(line))
			case err == io.EOF && line == "":
				return nil
			default:
				return io.ErrUnexpectedEOF
			}
		}
	})
}

// When Write returns, all that could be read was read.
func TestWrite(t *testing.T) {
	leaktest.Check(t)
	var got bytes.Buffer
	w := lines(func(s string) { got.WriteString(s) })
	for _, step := range []struct{ in, want string }{
		{"", ""}, {"a", ""}, {"b\nc", "AB\n"}, {"\n", "C\n"}, {"d\ne\n", "D\nE\n"},
	} {
		got.Reset()
		if n, err := w.Write([]byte(step.in)); n != len(step.in) || err != nil || got.String() != step.want {
			t.Errorf("Write(%q): %d, %v, %q; want %q", step.in, n, err, got.String(), step.want)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	w.Stop()
}

// The function learns of the end, and Close returns what it makes of it.
func TestCloseWithin(t *testing.T) {
	leaktest.Check(t)
	w := lines(func(string) {})
	_, _ = w.Write([]byte("half"))
	for range 2 {
		if err := w.Close(); err != io.ErrUnexpectedEOF {
			t.Errorf("Close: %v", err)
		}
	}
}

// The function is called at Close if nothing was written.
func TestCloseUnwritten(t *testing.T) {
	leaktest.Check(t)
	if err := lines(func(string) {}).Close(); err != nil {
		t.Error(err)
	}
}

// What follows the end of the function is dropped, or gets its error.
func TestEnded(t *testing.T) {
	leaktest.Check(t)
	for _, end := range []error{nil, errors.New("malformed")} {
		w := pushdecode.NewWriter(func(src io.Reader) error {
			_, _ = io.ReadFull(src, make([]byte, 2))
			return end
		})
		for i, p := range []string{"a", "bc", "d"} {
			n, err := w.Write([]byte(p))
			if want := end; i == 0 && err != nil || i > 0 && err != want || err == nil && n != len(p) || err != nil && n != 0 {
				t.Errorf("end %v: Write(%q): %d, %v", end, p, n, err)
			}
		}
		if err := w.Close(); err != end {
			t.Errorf("Close: %v, want %v", err, end)
		}
	}
}

// A panic reaches the caller of Write, with its value. The Writer fails from then on.
func TestPanic(t *testing.T) {
	leaktest.Check(t)
	w := lines(func(s string) { panic(s) })
	func() {
		defer func() {
			if v := recover(); v != "A\n" {
				t.Errorf("panic with %v", v)
			}
		}()
		_, _ = w.Write([]byte("a\n"))
	}()
	if n, err := w.Write([]byte("b\n")); n != 0 || err == nil {
		t.Errorf("Write after the panic: %d, %v", n, err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close after the panic returns nil")
	}
}

// Stop ends a function that waits for input, and one that was not called.
func TestStop(t *testing.T) {
	leaktest.Check(t)
	var last error
	w := pushdecode.NewWriter(func(src io.Reader) error {
		_, last = io.ReadAll(src)
		return last
	})
	_, _ = w.Write([]byte("a"))
	if w.Stop(); last != io.ErrUnexpectedEOF {
		t.Errorf("the function's Read returns %v", last)
	}
	w.Stop()
	if _, err := w.Write([]byte("b")); err == nil {
		t.Error("Write after Stop returns nil")
	}
	unused := lines(func(string) {})
	unused.Stop()
	if err := unused.Close(); err == nil {
		t.Error("Close of a Writer that was stopped before its first Write returns nil")
	}
}
