package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// A body that could not be read before the end of the exchange's time is the failure of the party that used up the time.
func TestBlameAtTheEndOfTheTime(t *testing.T) {
	end := time.Now()
	ctx, cancel := context.WithDeadlineCause(context.Background(), end, context.DeadlineExceeded)
	defer cancel()
	<-ctx.Done()
	for _, test := range []struct {
		name  string
		taken time.Time
		used  time.Duration // of a second
		kind  culvert.ErrorKind
	}{
		{"the client has just accepted a piece", end.Add(-leastWait / 2), 0, culvert.ClientGone},
		{"the client was served long ago", end.Add(-2 * leastWait), 499 * time.Millisecond, culvert.Timeout},
		{"the client used half of the time", end.Add(-2 * leastWait), time.Second / 2, culvert.ClientGone},
		{"nothing was written to the client", time.Time{}, 0, culvert.Timeout},
	} {
		c := client{end: end, begun: end.Add(-time.Second), taken: test.taken, used: test.used}
		if e := errs.As(c.readFailed(ctx, errors.New("read"))); e.Kind != test.kind {
			t.Errorf("%s: %v, want %v", test.name, e.Kind, test.kind)
		}
	}
}

// A filter's writer that accepts a part of a write, or has announced another length, has cut the response: the client is
// not to blame, and the response is not taken for a whole one.
func TestBlameOfAWriterBetween(t *testing.T) {
	for _, test := range []struct {
		name string
		w    refusingWriter
		err  error
		kind culvert.ErrorKind
	}{
		{"accepts less", refusingWriter{n: 1}, io.ErrShortWrite, culvert.Internal},
		{"has announced less", refusingWriter{err: http.ErrContentLength}, http.ErrContentLength, culvert.Internal},
		{"has lost its client", refusingWriter{err: net.ErrClosed}, net.ErrClosed, culvert.ClientGone},
	} {
		test.w.ResponseWriter = httptest.NewRecorder()
		resp := &http.Response{ProtoMajor: 1, ContentLength: 4, Body: io.NopCloser(strings.NewReader("body"))}
		_, err := copyTo(Options{}, test.w, httptest.NewRequest(http.MethodGet, "/", nil), resp)
		if e := errs.As(err); e == nil || e.Kind != test.kind || !errors.Is(e, test.err) {
			t.Errorf("%s: %v, want %v of the kind %v", test.name, err, test.err, test.kind)
		}
	}
}

// refusingWriter accepts n bytes of each write.
type refusingWriter struct {
	http.ResponseWriter
	n   int
	err error
}

func (w refusingWriter) Write([]byte) (int, error) { return w.n, w.err }

// The target has each piece ready, but for the last, which is some 50 ms late. The client takes most of the time.
func TestBlameOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name string
			slow time.Duration // how long the client takes for a piece
			kind culvert.ErrorKind
		}{
			{"slow reader", 95 * time.Millisecond, culvert.ClientGone},
			{"quick reader", time.Millisecond, culvert.Timeout},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			resp := &http.Response{ProtoMajor: 1, ContentLength: 1 << 20, Body: io.NopCloser(&lateAtTheEnd{ctx: ctx, pieces: 10})}
			_, err := copyTo(Options{}, slowWriter{httptest.NewRecorder(), test.slow}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), resp)
			cancel()
			if e := errs.As(err); e.Kind != test.kind {
				t.Errorf("%s: %v, want %v", test.name, e.Kind, test.kind)
			}
		}
	})
}

// lateAtTheEnd is a body of so many pieces, which then waits until the time has ended.
type lateAtTheEnd struct {
	ctx    context.Context
	pieces int
}

func (l *lateAtTheEnd) Read(p []byte) (int, error) {
	if l.pieces--; l.pieces < 0 {
		<-l.ctx.Done()
		return 0, l.ctx.Err()
	}
	return len(p), nil
}

type slowWriter struct {
	*httptest.ResponseRecorder
	each time.Duration
}

func (w slowWriter) Write(p []byte) (int, error) {
	time.Sleep(w.each)
	return len(p), nil
}
