package relay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
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
					_, err := copyTo(Options{Flush: time.Second}, w, httptest.NewRequest(http.MethodGet, "/", nil), resp)
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

// copyTo copies the body of resp to w.
func copyTo(o Options, w http.ResponseWriter, r *http.Request, resp *http.Response) (int64, error) {
	side := clientside.New(w, r)
	defer side.End()
	return o.copyBody(side, r, resp)
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
