package relay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A hook's panic in a late flush is repeated on the goroutine of its handler, once.
func TestPanicInALateFlush(t *testing.T) {
	for name, rest := range map[string]string{"and then the end": "", "and then more": "more"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, target := io.Pipe()
				go func() {
					_, _ = io.WriteString(target, "event")
					time.Sleep(time.Minute)
					_, _ = io.WriteString(target, rest)
					target.Close()
				}()
				resp := &http.Response{ProtoMajor: 1, ContentLength: -1, Body: body}
				panicked := func() (v any) {
					defer func() { v = recover() }()
					w := &panickingFlush{ResponseWriter: httptest.NewRecorder()}
					_, err := Options{Flush: time.Second}.copyBody(w, httptest.NewRequest(http.MethodGet, "/", nil), resp)
					return err
				}()
				if panicked != http.ErrAbortHandler {
					t.Errorf("the handler panicked with %v", panicked)
				}
				_, _ = io.Copy(io.Discard, body)
			})
		})
	}
}

// panickingFlush panics at the second flush: the first is the header's.
type panickingFlush struct {
	http.ResponseWriter
	flushes int
}

func (w *panickingFlush) FlushError() error {
	if w.flushes++; w.flushes == 2 {
		panic(http.ErrAbortHandler)
	}
	return nil
}
