//go:build !go1.27

package upstream

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/net/http2"
)

// errWindow is the error of a connection whose target has opened the window of a stream beyond 2^31-1 bytes.
var errWindow = fmt.Errorf("the target has opened the window of a stream beyond %d bytes: %w", math.MaxInt32, http2.ConnectionError(http2.ErrCodeFlowControl))

// windows has the windows of a connection's streams for sending, as far as its target knows them: what net/http is about
// to send counts when it is written. It is safe for concurrent use.
type windows struct {
	mu      sync.Mutex
	initial int64
	last    uint32 // the highest stream that was opened
	open    map[uint32]window
}

type window struct {
	delta       int64 // what the target has added, less what was sent
	sentAll     bool
	receivedAll bool
	reset       bool
	updating    bool // the header of a WINDOW_UPDATE was passed on, its payload was not
}

func newWindows() *windows { return &windows{initial: 65535, open: map[uint32]window{}} }

// sentFrame notes a frame that is written.
func (w *windows) sentFrame(f http2.FrameHeader) {
	if f.StreamID == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.open[f.StreamID]
	switch {
	case f.Type == http2.FrameHeaders && f.StreamID > w.last:
		w.last, known = f.StreamID, true
	case !known:
		return
	case f.Type == http2.FrameRSTStream:
		s.reset = true
	case f.Type == http2.FrameData:
		s.delta -= int64(f.Length)
	}
	s.sentAll = s.sentAll || endsStream(f)
	w.keep(f.StreamID, s)
}

// receivedFrame notes a frame of the target, and reports whether its stream was open.
func (w *windows) receivedFrame(f http2.FrameHeader) (known bool) {
	ends := endsStream(f)
	if !ends && f.Type != http2.FrameRSTStream && f.Type != http2.FrameWindowUpdate {
		return true // does not matter
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.open[f.StreamID]
	if known {
		s.reset = s.reset || f.Type == http2.FrameRSTStream
		s.receivedAll = s.receivedAll || ends
		s.updating = f.Type == http2.FrameWindowUpdate
		w.keep(f.StreamID, s)
	}
	return known
}

// keep keeps the window of a stream that has not ended. net/http may know one for a while that has.
func (w *windows) keep(stream uint32, s window) {
	if !s.updating && (s.reset || s.sentAll && s.receivedAll) {
		delete(w.open, stream)
		return
	}
	w.open[stream] = s
}

// add opens the window of a stream, behind receivedFrame.
func (w *windows) add(stream, n uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.open[stream]
	if s.delta += int64(n); w.initial+s.delta > math.MaxInt32 {
		return errWindow
	}
	s.updating = false
	w.keep(stream, s)
	return nil
}

// setInitial opens the windows of all streams.
func (w *windows) setInitial(n uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.initial = int64(n)
	for _, s := range w.open {
		if w.initial+s.delta > math.MaxInt32 {
			return errWindow
		}
	}
	return nil
}
