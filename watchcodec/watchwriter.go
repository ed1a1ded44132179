package watchcodec

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errMore says that a frame has not come as a whole yet.
var errMore = errors.New("watchcodec: more is to come")

// feed is the stream of a reader that is given its bytes piece by piece.
type feed struct{ p []byte }

func (f *feed) Read(b []byte) (int, error) {
	if len(f.p) == 0 {
		return 0, errMore
	}
	n := copy(b, f.p)
	f.p = f.p[n:]
	return n, nil
}

// watchWriter takes a watch as a server sends it and sends the client its own.
type watchWriter struct {
	w       io.Writer
	feed    *feed
	format  Format
	events  *EventReader
	visible *Visible
	out     []byte
	tables  bool
	ended   error
}

func newWatchWriter(w io.Writer, a *answer) *watchWriter {
	f := new(feed)
	ww := &watchWriter{w: w, format: a.format, feed: f, events: NewEventReader(f, a.format, a.o.MaxObject), visible: NewVisible(a.rewrite), tables: a.o.Tables}
	ww.visible.table.row.bare = a.bare
	return ww
}

// Write sends what the events in p have become, and as one piece: the server has flushed
// as often as it saw fit. After what can't be read it sends an ERROR event and fails.
func (w *watchWriter) Write(p []byte) (int, error) {
	if w.ended != nil {
		return 0, w.ended
	}
	w.feed.p = p
	w.out = w.out[:0]
	err := w.rewrite()
	if err != nil {
		w.ended = fmt.Errorf("watchcodec: the watch was ended: %w", err)
		w.out = appendError(w.out, w.format, failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the gateway could not read the server's watch: "+err.Error()))
	}
	if len(w.out) > 0 {
		if _, err := w.w.Write(w.out); err != nil {
			return 0, err
		}
	}
	if w.ended != nil {
		return 0, w.ended
	}
	return len(p), nil
}

// rewrite appends to w.out what the client is told.
func (w *watchWriter) rewrite() error {
	for {
		event, err := w.events.Next()
		if err == errMore {
			return nil
		}
		if err != nil {
			return err
		}
		if string(event.Object.Kind()) == tableKind && !w.tables {
			return errors.New("a Table, which was not asked for")
		}
		tell, err := w.visible.Apply(event)
		if err != nil {
			return err
		}
		if !tell {
			continue
		}
		if w.out, err = event.Append(w.out); err != nil {
			return err
		}
	}
}

// Close is called at the end of the stream, which must not be in the middle of a frame:
// what has come of one was not sent.
func (w *watchWriter) Close() error {
	w.feed.p = nil
	if w.ended != nil || !w.events.unfinished() {
		return nil
	}
	w.out = appendError(w.out[:0], w.format, failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the server's watch ended in the middle of an event"))
	_, err := w.w.Write(w.out)
	return err
}
