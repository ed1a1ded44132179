package watchcodec

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchWriter takes a watch as the server sends it, and sends the client its own watch.
type watchWriter struct {
	w       io.Writer
	format  Format
	events  *EventParser
	visible *visibility
	out     []byte
	tables  bool
}

func newWatchWriter(w io.Writer, x *exchange) *watchWriter {
	ww := &watchWriter{w: w, format: x.format, visible: x.visible, tables: x.o.Tables}
	ww.events = NewEventParser(x.format, x.o.MaxObject, ww.event)
	ww.visible.table.row.bare = x.bare
	return ww
}

// Write sends the events in p, rewritten, in one write: the server has flushed them as often as it
// wants. After an event that can't be read it sends an ERROR event and returns an error.
func (w *watchWriter) Write(p []byte) (int, error) {
	if w.events.err != nil {
		return 0, w.events.err
	}
	w.out = w.out[:0]
	if _, err := w.events.Write(p); err != nil {
		return 0, w.sendError(err)
	}
	if len(w.out) > 0 {
		if _, err := w.w.Write(w.out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// sendError sends w.out and an ERROR event for err. It returns the error of Write.
func (w *watchWriter) sendError(err error) error {
	failed := fmt.Errorf("watchcodec: the watch was ended: %w", err)
	if errors.Is(err, errUnknownState) {
		w.appendError(http.StatusGone, metav1.StatusReasonExpired, "this gateway does not know any more what you have seen: list again")
	} else {
		w.appendError(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the gateway could not read the server's watch: "+err.Error())
	}
	if _, err := w.w.Write(w.out); err != nil {
		return err
	}
	if f, ok := w.w.(interface{ FlushError() error }); ok { // otherwise the handler's abort would drop the ERROR event
		_ = f.FlushError()
	}
	return failed
}

// unreadable implements inflated: a watch whose compression is malformed ends with an ERROR event,
// as any malformed watch does.
func (w *watchWriter) unreadable(err error, ended bool) error {
	w.out = w.out[:0]
	w.events.err = err
	if failed := w.sendError(err); !ended || !errors.Is(failed, err) {
		return failed
	}
	return nil
}

func (w *watchWriter) appendError(code int, reason metav1.StatusReason, message string) {
	w.out = AppendError(w.out, w.format, NewFailure(code, reason, message))
}

// event appends to w.out the event that the client receives for e.
func (w *watchWriter) event(e *Event) error {
	if string(e.Object.Kind()) == tableKind && !w.tables {
		return errors.New("a Table, which was not requested")
	}
	if len(e.Object.Kind()) == 0 || len(e.Object.APIVersion()) == 0 {
		return errKind
	}
	send, err := w.visible.Apply(e)
	if err == nil && send {
		w.out, err = e.Append(w.out)
	}
	return err
}

// Close is called at the end of the stream. If that is within a frame, of which nothing was sent,
// it sends an ERROR event.
func (w *watchWriter) Close() error {
	if w.events.err != nil || w.events.Close() == nil {
		return nil
	}
	w.out = w.out[:0]
	w.appendError(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the server's watch ended in the middle of an event")
	_, err := w.w.Write(w.out)
	return err
}
