package watchcodec

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchWriter takes a watch as a server sends it and sends the client its own.
type watchWriter struct {
	w       io.Writer
	format  Format
	events  *EventWriter
	visible *Visible
	out     []byte
	tables  bool
}

func newWatchWriter(w io.Writer, a *answer) *watchWriter {
	ww := &watchWriter{w: w, format: a.format, visible: a.visible, tables: a.o.Tables}
	ww.events = NewEventWriter(a.format, a.o.MaxObject, ww.event)
	ww.visible.table.row.bare = a.bare
	return ww
}

// Write sends what the events in p have become, and as one piece: the server has flushed
// as often as it saw fit. After what can't be read it sends an ERROR event and fails.
func (w *watchWriter) Write(p []byte) (int, error) {
	if w.events.events.err != nil {
		return 0, w.events.events.err
	}
	w.out = w.out[:0]
	if _, err := w.events.Write(p); err != nil {
		return 0, w.end(err)
	}
	if len(w.out) > 0 {
		if _, err := w.w.Write(w.out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// end sends what is in w.out, and an ERROR event for err. It returns the error of Write.
func (w *watchWriter) end(err error) error {
	failed := fmt.Errorf("watchcodec: the watch was ended: %w", err)
	if errors.Is(err, ErrUnknownState) {
		w.fail(http.StatusGone, metav1.StatusReasonExpired, "this gateway can't tell any more what you have seen: list again")
	} else {
		w.fail(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the gateway could not read the server's watch: "+err.Error())
	}
	if _, err := w.w.Write(w.out); err != nil {
		return err
	}
	if f, ok := w.w.(interface{ FlushError() error }); ok { // or the handler's abort drops the ERROR event
		_ = f.FlushError()
	}
	return failed
}

// unreadable serves the gunzipWriter: the client of a watch whose compression breaks is told what that of another one is.
func (w *watchWriter) unreadable(err error, ended bool) error {
	w.out = w.out[:0]
	w.events.events.err = err
	if failed := w.end(err); !ended || !errors.Is(failed, err) {
		return failed
	}
	return nil
}

func (w *watchWriter) fail(code int, reason metav1.StatusReason, message string) {
	w.out = AppendError(w.out, w.format, NewFailure(code, reason, message))
}

// event appends to w.out what the client is told of an event.
func (w *watchWriter) event(e *Event) error {
	if string(e.Object.Kind()) == tableKind && !w.tables {
		return errors.New("a Table, which was not asked for")
	}
	if len(e.Object.Kind()) == 0 || len(e.Object.APIVersion()) == 0 {
		return errKind
	}
	tell, err := w.visible.Apply(e)
	if err == nil && tell {
		w.out, err = e.Append(w.out)
	}
	return err
}

// Close is called at the end of the stream, which must not be in the middle of a frame:
// what has come of one was not sent.
func (w *watchWriter) Close() error {
	if w.events.events.err != nil || w.events.Close() == nil {
		return nil
	}
	w.out = w.out[:0]
	w.fail(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the server's watch ended in the middle of an event")
	_, err := w.w.Write(w.out)
	return err
}
