package relay

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// If the late flush of a response's last piece fails, the response fails, though nothing is written after it.
func TestLastLateFlushFails(t *testing.T) {
	for name, blocks := range map[string]bool{"before the end": false, "behind the end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, target := io.Pipe()
				go func() {
					_, _ = io.WriteString(target, "event")
					time.Sleep(2 * time.Second)
					target.Close()
				}()
				resp := &http.Response{ProtoMajor: 1, ContentLength: -1, Body: body}
				w := &failingFlush{ResponseWriter: httptest.NewRecorder(), blocks: blocks}
				_, err := copyTo(Options{Flush: time.Second}, w, httptest.NewRequest(http.MethodGet, "/", nil), resp)
				if e := errs.As(err); e == nil || e.Kind != culvert.ClientGone || !errors.Is(e, net.ErrClosed) {
					t.Errorf("the failure is %v", err)
				}
			})
		})
	}
}

// failingFlush fails at the second flush: the first is the header's.
type failingFlush struct {
	http.ResponseWriter
	blocks  bool // for a minute
	flushes int
}

func (w *failingFlush) FlushError() error {
	if w.flushes++; w.flushes < 2 {
		return nil
	}
	if w.blocks {
		time.Sleep(time.Minute)
	}
	return net.ErrClosed
}
