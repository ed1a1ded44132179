package panics_test

import (
	"bytes"
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
