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

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// FanoutOptions configures a Fanout. The zero value is for JSON.
type FanoutOptions struct {
	// Format is the format of the frames.
	Format Format
	// Frames and Bytes bound the frames that are kept for clients that are behind; 0 means 1,024
	// frames and 16 MiB. A client that is further behind gets a 410 and has to list again.
	Frames, Bytes int
	// WriteTimeout bounds the time that a client may take to accept the frames that are ready for
	// it, to within a quarter; 0 means 60 seconds, a negative value no bound. The response to a client
	// that takes longer is cut off: no error can be sent to it.
	WriteTimeout time.Duration
	// Version is the version before the first frame, see SendVersion.
	Version uint64
}

// Fanout sends the frames of one watch to many clients. Each frame is held once for all clients,
// and no client waits for another. A Fanout is safe for concurrent use by multiple goroutines.
type Fanout struct {
	o FanoutOptions

	mu      sync.Mutex
	frames  []versioned // the latest ones
	dropped uint64      // the version of the latest frame that is no longer kept
	last    uint64      // the version of the latest frame
	bytes   int
	wake    chan struct{} // closed when a frame is added or the Fanout is closed
	closed  bool
}

// versioned is a frame, which is immutable, and its version.
type versioned struct {
	version uint64
	frame   []byte
}

// NewFanout checks the options and returns a Fanout without clients.
func NewFanout(o FanoutOptions) (*Fanout, error) {
	if o.Frames < 0 || o.Bytes < 0 {
		return nil, errors.New("watchcodec: FanoutOptions: a negative bound")
	}
	if o.Frames == 0 {
		o.Frames = 1024
	}
	if o.Bytes == 0 {
		o.Bytes = 16 << 20
	}
	o.WriteTimeout = bound.OrDefault(o.WriteTimeout, time.Minute)
	return &Fanout{o: o, dropped: o.Version, last: o.Version, wake: make(chan struct{})}, nil
}

// Send sends a frame, as Event.Append makes it, to every client. It does not wait for the clients.
// The frame is copied. Its version is one greater than that of the last frame.
func (f *Fanout) Send(frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.send(f.last+1, append([]byte(nil), frame...))
}

// SendVersion is like Send for a frame with a version, as a resourceVersion is. The version must be
// greater than those of the frames before: clients name by it the last frame that they received.
// The frame is not copied and must not be changed afterwards.
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

// Kept reports whether the frames after version are all kept, so that a client that has received
// all before can be sent the rest.
func (f *Fanout) Kept(version uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return version >= f.dropped && version <= f.last
}

// Close ends the watch of each client when the frames sent before are delivered, as a server does
// that shuts down. Clients then start a new watch. After Close, Send and SendVersion do nothing.
func (f *Fanout) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.wake)
	}
}

// batch is the maximum number of frames that are written to a client between two flushes.
const batch = 16

// backlog holds the next frames for a client.
type backlog struct {
	frames []versioned
	lost   bool            // the next frame is no longer kept
	wake   <-chan struct{} // closed when there are more frames; nil: there are already
	ended  bool
}

// backlogAfter returns the next frames for a client that has received all up to version.
func (f *Fanout) backlogAfter(version uint64, buf *[batch]versioned) backlog {
	f.mu.Lock()
	defer f.mu.Unlock()
	if version < f.dropped {
		return backlog{lost: true}
	}
	from, _ := slices.BinarySearchFunc(f.frames, version+1, func(v versioned, want uint64) int { return cmp.Compare(v.version, want) })
	kept := f.frames[from:]
	a := backlog{frames: buf[:copy(buf[:], kept)]}
	if len(kept) <= batch {
		a.wake, a.ended = f.wake, f.closed
	}
	return a
}

// Version returns the version of the last frame.
func (f *Fanout) Version() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// ServeHTTP sends a client the frames that are sent from now on, until the client disconnects or
// Close is called. A caller that needs to know the version at which it starts calls Follow instead.
func (f *Fanout) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Follow(w, r, FollowOptions{After: f.Version()})
}

// FollowOptions configures how a client follows a Fanout.
type FollowOptions struct {
	// After is the version up to which the client has received everything.
	After uint64
	// Before writes what the client receives first, the initial events of a watch for instance; nil
	// means nothing. An error, which is that of w, means that the client has disconnected.
	Before func(w io.Writer) error
	// Bookmark returns the frame that is sent to a client that has received all up to version, and
	// nothing for BookmarkEvery. If Bookmark is nil, no such frame is sent.
	Bookmark func(version uint64) []byte
	// BookmarkEvery is the interval of bookmarks; 0 means a minute, as with the API server, and a
	// negative value that none are sent.
	BookmarkEvery time.Duration
}

// Follow sends a client the frames after o.After, until the client disconnects or Close is called.
// A client that is further behind than the kept frames receives an ERROR event of 410.
func (f *Fanout) Follow(w http.ResponseWriter, r *http.Request, o FollowOptions) {
	w.Header().Set("Content-Type", f.o.Format.WatchContentType())
	c := new(fanoutClient)
	c.side.Start(w, r)
	defer c.side.End()
	c.writes.StartWrites(&c.side, r, f.o.WriteTimeout) // if w can't be bounded, the server's own timeout applies
	defer c.writes.Leave()                             // for the end of the stream, perhaps after a long pause
	if o.Before != nil && o.Before(c) != nil || !c.send() {
		return
	}
	c.writes.PassOn()
	version := o.After
	var buf [batch]versioned
	for {
		a := f.backlogAfter(version, &buf)
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
		clear(a.frames) // this client must not keep frames that the others have received
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

// fanoutClient is one client of a Fanout.
type fanoutClient struct {
	side   clientside.Handle
	writes deadline.Deadline
	batch  [][]byte
}

// wait waits for more frames, and sends bookmarks meanwhile. It reports false if the client has
// disconnected.
func (c *fanoutClient) wait(r *http.Request, wake <-chan struct{}, o *FollowOptions, version uint64) bool {
	var due <-chan time.Time
	if o.Bookmark != nil && o.BookmarkEvery >= 0 {
		ticker := time.NewTicker(cmp.Or(o.BookmarkEvery, time.Minute))
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

// Write implements the io.Writer of FollowOptions.Before.
func (c *fanoutClient) Write(p []byte) (int, error) {
	c.writes.Begin()
	defer c.writes.End()
	return c.side.Write(p)
}

// send writes and flushes frames. It reports false if the client has disconnected.
func (c *fanoutClient) send(frames ...[]byte) bool {
	c.writes.Begin()
	defer c.writes.End()
	w := c.side.Writer()
	for _, frame := range frames {
		if len(frame) == 0 {
			continue
		}
		if _, err := w.Write(frame); err != nil {
			return false
		}
	}
	return http.NewResponseController(w).Flush() == nil
}
