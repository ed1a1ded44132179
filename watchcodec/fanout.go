package watchcodec

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/deadline"
)

// FanoutOptions configures a Fanout. The zero value is for JSON.
type FanoutOptions struct {
	// Format is that of the frames.
	Format Format
	// Frames and Bytes bound what is kept for clients that are behind; 0 means 1,024
	// frames and 16 MiB. A client that is further behind is told 410 and begins anew.
	Frames, Bytes int
	// WriteTimeout bounds the time that a client may take to accept what is there for it, to a quarter;
	// 0 means 60 seconds. One that takes longer is cut: nothing can be told it.
	WriteTimeout time.Duration
	// Version is that before the first frame, see SendVersion.
	Version uint64
}

// Fanout sends the frames of one watch to many clients. Each frame is held once for all
// of them, and none waits for another. It is safe for concurrent use.
type Fanout struct {
	o FanoutOptions

	mu      sync.Mutex
	frames  []versioned // the last ones
	dropped uint64      // the version of the last one that is not kept
	last    uint64      // the version of the last one
	bytes   int
	wake    chan struct{} // closed when there is something new
	closed  bool
}

// versioned is a frame, which does not change, and its version.
type versioned struct {
	version uint64
	frame   []byte
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
	return &Fanout{o: o, dropped: o.Version, last: o.Version, wake: make(chan struct{})}, nil
}

// Send sends a frame, as Event.Append makes it, to every client. It does not wait for any.
// The frame is copied. Its version is the last one's and 1.
func (f *Fanout) Send(frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(f.last+1, append([]byte(nil), frame...))
}

// SendVersion is Send of a frame that has a version, as a resourceVersion is: by it clients
// say what they have had. It must be above those before. The frame must not be changed
// any more.
func (f *Fanout) SendVersion(version uint64, frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(version, frame)
}

func (f *Fanout) send(version uint64, frame []byte) {
	if f.closed {
		return
	}
	f.frames = append(f.frames, versioned{version, frame})
	f.last = version
	f.bytes += len(frame)
	for len(f.frames) > f.o.Frames || f.bytes > f.o.Bytes && len(f.frames) > 1 {
		f.bytes -= len(f.frames[0].frame)
		f.dropped = f.frames[0].version
		f.frames[0] = versioned{}
		f.frames = f.frames[1:]
	}
	close(f.wake)
	f.wake = make(chan struct{})
}

// Kept says whether a client that has had all up to a version can be sent the rest.
func (f *Fanout) Kept(version uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return version >= f.dropped && version <= f.last
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
	frames []versioned
	lost   bool            // the next one is not kept any more
	wake   <-chan struct{} // closed when there is more; nil: there is more already
	ended  bool
}

// after is what a client has before it that has had all up to a version.
func (f *Fanout) after(version uint64, buf *[batch]versioned) ahead {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version < f.dropped {
		return ahead{lost: true}
	}
	from, _ := slices.BinarySearchFunc(f.frames, version+1, func(v versioned, want uint64) int { return cmp.Compare(v.version, want) })
	kept := f.frames[from:]
	a := ahead{frames: buf[:copy(buf[:], kept)]}
	if len(kept) <= batch {
		a.wake, a.ended = f.wake, f.closed
	}
	return a
}

// Version is that of the last frame.
func (f *Fanout) Version() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// ServeHTTP sends a client the frames that are sent from now on, until it goes or Close is
// called. Whoever needs to know where now is calls Follow.
func (f *Fanout) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Follow(w, r, Following{After: f.Version()})
}

// Following is how a client follows a Fanout.
type Following struct {
	// After is the version up to which the client has all.
	After uint64
	// Before writes what is sent first, the initial events of a watch for instance; nil is
	// nothing. After an error, which is that of w, the client is gone.
	Before func(w io.Writer) error
	// Bookmark makes what is sent to a client that has all up to a version and has been
	// sent nothing for BookmarkEvery; nil means that nothing is.
	Bookmark func(version uint64) []byte
	// BookmarkEvery is 0 for a minute, as of the API server.
	BookmarkEvery time.Duration
}

// Follow sends a client what is sent after a version, until it goes or Close is called. A
// client that is further behind than what is kept is told 410.
func (f *Fanout) Follow(w http.ResponseWriter, r *http.Request, o Following) {
	w.Header().Set("Content-Type", f.o.Format.WatchContentType())
	c := &fanoutClient{w: w}
	c.writes.StartWrites(w, r, f.o.WriteTimeout) // where the server can't, its own timeout must do
	defer c.writes.Leave()                       // for the end of the stream, perhaps behind a long pause
	if o.Before != nil && o.Before(c) != nil || !c.send() {
		return
	}
	c.writes.PassOn()
	version := o.After
	var buf [batch]versioned
	for {
		a := f.after(version, &buf)
		if a.lost {
			c.send(AppendError(nil, f.o.Format, NewFailure(http.StatusGone, metav1.StatusReasonExpired, "too old: the watch was too slow for what has happened")))
			return
		}
		for _, frame := range a.frames {
			version = frame.version
			c.batch = append(c.batch, frame.frame)
		}
		if len(c.batch) > 0 && !c.send(c.batch...) {
			return
		}
		clear(a.frames) // this client must not keep what the others have had
		clear(c.batch)
		c.batch = c.batch[:0]
		switch {
		case a.ended:
			return
		case a.wake == nil:
			continue
		}
		if !c.wait(r, a.wake, &o, version) {
			return
		}
	}
}

// fanoutClient is one of the clients.
type fanoutClient struct {
	w      http.ResponseWriter
	writes deadline.Deadline
	batch  [][]byte
}

// wait returns when there is more, and sends bookmarks until then. It returns false if the
// client is gone.
func (c *fanoutClient) wait(r *http.Request, wake <-chan struct{}, o *Following, version uint64) bool {
	var due <-chan time.Time
	if o.Bookmark != nil {
		every := cmp.Or(o.BookmarkEvery, time.Minute)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-wake:
			return true
		case <-r.Context().Done():
			return false
		case <-due:
			if !c.send(o.Bookmark(version)) {
				return false
			}
		}
	}
}

// Write serves Following.Before.
func (c *fanoutClient) Write(p []byte) (int, error) {
	c.writes.Begin()
	defer c.writes.End()
	return c.w.Write(p)
}

// send writes and flushes, and returns false if the client is gone.
func (c *fanoutClient) send(frames ...[]byte) bool {
	c.writes.Begin()
	defer c.writes.End()
	for _, frame := range frames {
		if len(frame) == 0 {
			continue
		}
		if _, err := c.w.Write(frame); err != nil {
			return false
		}
	}
	return http.NewResponseController(c.w).Flush() == nil
}
