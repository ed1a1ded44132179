package clientside_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// writer records the calls of its methods.
type writer struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	calls []string
}

func newWriter() *writer { return &writer{ResponseRecorder: httptest.NewRecorder()} }

func (w *writer) called(method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, method)
}

func (w *writer) Header() http.Header {
	w.called("Header")
	return w.ResponseRecorder.Header()
}

func (w *writer) WriteHeader(status int) { w.called("WriteHeader") }

func (w *writer) Write(p []byte) (int, error) {
	w.called("Write")
	return len(p), nil
}

func (w *writer) FlushError() error {
	w.called("FlushError")
	return nil
}

func (w *writer) SetReadDeadline(time.Time) error {
	w.called("SetReadDeadline")
	return nil
}

func (w *writer) SetWriteDeadline(time.Time) error {
	w.called("SetWriteDeadline")
	return nil
}

func (w *writer) EnableFullDuplex() error {
	w.called("EnableFullDuplex")
	return nil
}

// calls are the calls of a Handle, by their names.
var calls = map[string]func(*clientside.Handle) error{
	"SetReadDeadline":  func(h *clientside.Handle) error { return h.SetReadDeadline(time.Time{}) },
	"SetWriteDeadline": func(h *clientside.Handle) error { return h.SetWriteDeadline(time.Time{}) },
	"EnableFullDuplex": (*clientside.Handle).EnableFullDuplex,
	"Write": func(h *clientside.Handle) error {
		_, err := h.Write([]byte("x"))
		return err
	},
	"Flush":              (*clientside.Handle).Flush,
	"WriteInterim":       func(h *clientside.Handle) error { return h.WriteInterim(103, nil) },
	"WriteContinue":      (*clientside.Handle).WriteContinue,
	"CloseAfterResponse": (*clientside.Handle).CloseAfterResponse,
}

// No call reaches a writer before Start or after End.
func TestNoCallOutsideOfAHandler(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for name, call := range calls {
		w := newWriter()
		var h clientside.Handle
		if err := call(&h); err != clientside.ErrEnded {
			t.Errorf("%s before Start: %v", name, err)
		}
		h.Start(w, r)
		if err := call(&h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.End()
		had := len(w.calls)
		if err := call(&h); err != clientside.ErrEnded || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after End: %v", name, err)
		}
		if h.Writer() != nil || len(w.calls) != had {
			t.Errorf("%s after End reaches the writer: %v", name, w.calls[had:])
		}
	}
}

// blocked is a writer whose flush waits for its deadline or for unblock.
type blocked struct {
	*writer
	unblock chan struct{}
}

func (b *blocked) FlushError() error {
	<-b.unblock
	return os.ErrDeadlineExceeded
}

func (b *blocked) SetReadDeadline(time.Time) error {
	<-b.unblock
	return nil
}

func (b *blocked) SetWriteDeadline(t time.Time) error {
	b.called("SetWriteDeadline")
	if t.Equal(clientside.Past) {
		close(b.unblock)
	}
	return nil
}

// End fails a flush that waits for the client, and waits for it. No deadline is set where nothing waits: over HTTP/2 it
// would reset the stream.
func TestEndFailsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocked{newWriter(), make(chan struct{})}
		h := clientside.New(b, httptest.NewRequest(http.MethodGet, "/", nil))
		flushed := false
		go func() {
			if err := h.Flush(); err != os.ErrDeadlineExceeded {
				t.Errorf("the flush: %v", err)
			}
			flushed = true
		}()
		synctest.Wait()
		h.End()
		synctest.Wait()
		if !flushed {
			t.Error("the flush has not returned")
		}
	})
}

// End waits for a call that sets a deadline, and fails nothing.
func TestEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocked{newWriter(), make(chan struct{})}
		h := clientside.New(b, httptest.NewRequest(http.MethodGet, "/", nil))
		go func() { _ = h.SetReadDeadline(time.Time{}) }()
		synctest.Wait()
		time.AfterFunc(time.Minute, func() { close(b.unblock) })
		begun := time.Now()
		h.End()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("End has returned after %v", took)
		}
		if len(b.calls) > 0 {
			t.Errorf("called: %v", b.calls)
		}
	})
}

// outer is the writer of a filter.
type outer struct{ http.ResponseWriter }

func (o outer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// native is the writer of a server that is a Server itself.
type native struct{ *writer }

func (n native) WriteContinue() { n.called("WriteContinue") }

func (n native) CloseAfterResponse() { n.called("CloseAfterResponse") }

// A writer that is a Server is called through all its wrappers, and none of net/http's side effects is used.
func TestServerBehindWrappers(t *testing.T) {
	n := native{newWriter()}
	h := clientside.New(outer{outer{n}}, httptest.NewRequest(http.MethodPost, "/", nil))
	if err := errors.Join(h.WriteContinue(), h.CloseAfterResponse()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"WriteContinue", "CloseAfterResponse"}; !slices.Equal(n.calls, want) {
		t.Errorf("called: %v, want %v", n.calls, want)
	}
}

// An interim response has its own header only, and leaves that of the final one, also if a writer panics.
func TestInterimLeavesTheHeader(t *testing.T) {
	for _, panics := range []bool{false, true} {
		i := &interim{ResponseRecorder: httptest.NewRecorder(), panics: panics}
		i.Header().Set("Final", "1")
		h := clientside.New(i, httptest.NewRequest(http.MethodGet, "/", nil))
		func() {
			defer func() {
				if v := recover(); (v != nil) != panics {
					t.Errorf("panicked with %v", v)
				}
			}()
			_ = h.WriteInterim(103, http.Header{"Link": {"</a>"}})
		}()
		if i.sent.Get("Link") == "" || i.sent.Get("Final") != "" {
			t.Errorf("sent %v", i.sent)
		}
		if i.Header().Get("Final") == "" || i.Header().Get("Link") != "" {
			t.Errorf("the final header is %v", i.Header())
		}
		h.End() // does not wait for the call that has panicked
	}
}

// interim keeps the header that it was called to write.
type interim struct {
	*httptest.ResponseRecorder
	sent   http.Header
	panics bool
}

func (i *interim) WriteHeader(int) {
	i.sent = i.Header().Clone()
	if i.panics {
		panic("a bug")
	}
}
