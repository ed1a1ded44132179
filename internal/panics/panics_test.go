package panics_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/panics"
)

func TestContain(t *testing.T) {
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	call := func(f func()) {
		defer panics.Contain(l, "Options.Function")
		f()
	}
	call(func() {})
	call(func() { panic(http.ErrAbortHandler) })
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	call(func() { panic("a bug") })
	for _, want := range []string{"level=ERROR", "function=Options.Function", `panic="a bug"`, "TestContain"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
}

func TestCatch(t *testing.T) {
	call := func(f func() error) (err error) {
		defer panics.Catch(&err)
		return f()
	}
	other := errors.New("no panic")
	if err := call(func() error { return other }); err != other {
		t.Error(err)
	}
	var caught *panics.Error
	err := call(func() error { panic("a bug") })
	if !errors.As(err, &caught) || caught.Value != "a bug" || !bytes.Contains(caught.Stack, []byte("TestCatch")) || err.Error() != "panic: a bug" {
		t.Errorf("%v, %+v", err, caught)
	}
}
