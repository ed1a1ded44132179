package watchcodec

import (
	"errors"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FanoutOptions configures a Fanout. The zero value is for JSON.
type FanoutOptions struct {
	// Format is that of the frames.
	Format Format
	// Frames and Bytes bound what is kept for clients that are behind; 0 means 1,024
	// frames and 16 MiB. A client that is further behind is told 410 and begins anew.
	Frames, Bytes int
	// WriteTimeout bounds the time that a client may take to accept what is there for it;
	// 0 means 60 seconds. One that takes longer is cut: nothing can be told it.
	WriteTimeout time.Duration
}

// Fanout sends the frames of one watch to many clients. Each frame is held once for all
// of them, and none waits for another. It is safe for concurrent use.
type Fanout struct {
	o FanoutOptions

	mu     sync.Mutex
	frames [][]byte // the last ones; they don't change
	first  uint64   // the number of frames[0]
	bytes  int
	wake   chan struct{} // closed when there is something new
	closed bool
}

// NewFanout checks the options and returns a Fanout without clients.
func NewFanout(o FanoutOptions) (*Fanout, error) {
	if o.Frames < 0 || o.Bytes < 0 || o.WriteTimeout < 0 {
		return nil, errors.New("watchcodec: FanoutOptions: a negative bound")
	}
	if o.Frames == 0 {
		o.Frames = 1024
	}
	if o.Bytes == 0 {
		o.Bytes = 16 << 20
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = time.Minute
	}
	return &Fanout{o: o, wake: make(chan struct{})}, nil
}

// Send sends a frame, as Event.Append makes it, to every client. It does not wait for any.
// The frame is copied.
func (f *Fanout) Send(frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.frames = append(f.frames, append([]byte(nil), frame...))
	f.bytes += len(frame)
	for len(f.frames) > f.o.Frames || f.bytes > f.o.Bytes && len(f.frames) > 1 {
		f.bytes -= len(f.frames[0])
		f.frames[0] = nil
		f.frames = f.frames[1:]
		f.first++
	}
	close(f.wake)
	f.wake = make(chan struct{})
}

// Close ends every client's watch when it has what was sent before, as a server does that
// goes down: clients begin a new one.
func (f *Fanout) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.wake)
	}
}

// batch is how many frames a client is sent between two flushes, at most.
const batch = 16

// ahead is what a client has before it.
type ahead struct {
	frames [][]byte
	lost   bool            // the next one is not kept any more
	wake   <-chan struct{} // closed when there is more; nil: there is more already
	ended  bool
}

// from is what a client has before it that has had all up to the frame next.
func (f *Fanout) from(next uint64, buf *[batch][]byte) ahead {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next < f.first {
		return ahead{lost: true}
	}
	kept := f.frames[next-f.first:]
	a := ahead{frames: buf[:copy(buf[:], kept)]}
	if len(kept) <= batch {
		a.wake, a.ended = f.wake, f.closed
	}
	return a
}

func (f *Fanout) next() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first + uint64(len(f.frames))
}

// ServeHTTP sends a client the frames that are sent from now on, until it goes or Close is
// called. Whoever needs to know where now is calls Watch.
func (f *Fanout) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Watch(w, r, func() []byte { return nil })
}

// Watch is ServeHTTP that sends what before returns first, the initial events of a watch
// for instance. What is sent while before runs comes behind it: the client misses
// nothing, and may see an event twice.
func (f *Fanout) Watch(w http.ResponseWriter, r *http.Request, before func() []byte) {
	contentType := jsonType
	if f.o.Format == Protobuf {
		contentType = protobufType + ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	next := f.next()
	c := &fanoutClient{w: w, rc: http.NewResponseController(w), timeout: f.o.WriteTimeout}
	if !c.send(before()) {
		return
	}
	var buf [batch][]byte
	for {
		a := f.from(next, &buf)
		if a.lost {
			c.send(appendError(nil, f.o.Format, failure(http.StatusGone, metav1.StatusReasonExpired, "too old: the watch was too slow for what has happened")))
			return
		}
		if next += uint64(len(a.frames)); len(a.frames) > 0 && !c.send(a.frames...) {
			return
		}
		clear(a.frames) // this client must not keep what the others have had
		switch {
		case a.ended:
			return
		case a.wake == nil:
			continue
		}
		select {
		case <-a.wake:
		case <-r.Context().Done():
			return
		}
	}
}

// fanoutClient is one of the clients.
type fanoutClient struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
}

// send writes and flushes, and returns false if the client is gone.
func (c *fanoutClient) send(frames ...[]byte) bool {
	_ = c.rc.SetWriteDeadline(time.Now().Add(c.timeout)) // where the server can't, its own timeout must do
	for _, frame := range frames {
		if len(frame) == 0 {
			continue
		}
		if _, err := c.w.Write(frame); err != nil {
			return false
		}
	}
	return c.rc.Flush() == nil
}
