package view

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/watchcodec"
)

// Options configures Views.
type Options struct {
	// Renderer returns the Renderer of the objects that a request is for, the same for all requests
	// of one caller for one resource. If it returns nil, the request and its response pass
	// unchanged. Required.
	Renderer func(*http.Request, watchcodec.Request) Renderer
	// Caller returns a name for the caller of a request. Callers of the same name share Views,
	// which are filled with the credentials of the first of them: all must have the same rights. If
	// Caller is nil, callers are distinguished by all their credentials: Authorization, Cookie, the
	// Impersonate- and X-Remote- fields, and the client certificate.
	Caller func(*http.Request) string
	// AllowWrites lets PUT and PATCH pass. By default they are refused (403), since writing back a
	// trimmed object destroys the rest.
	AllowWrites bool
	// MaxViews bounds the number of Views at a time; 0 means 1,000. A request for one more ends the
	// oldest View that was never filled, or gets a 503 if there is none.
	MaxViews int
	// MaxPending bounds the number of Views that were never filled for the clients of one IPv4
	// address or one IPv6 network of 64 bits; 0 means 32. A request for one more gets a 429. The
	// address is that of the connection, or the one that filters.RealIP has found: without RealIP
	// all clients of a proxy in front share the bound.
	MaxPending int
	// Reauthorize bounds how long a caller keeps its View after its credentials or its rights are
	// withdrawn: the View sends the server a request with them at least that often, and if the
	// server refuses, the View and its clients' watches end. 0 means 60 seconds, and a negative
	// value no bound: a caller without rights keeps its View until the server ends the View's
	// watch. While the server is out of reach, Views are served with their last state.
	Reauthorize time.Duration
	// MaxBytes bounds the memory for the objects of one View, both as the server has them and as
	// clients see them, in bytes as they are held, possibly compressed; 0 means 256 MiB. A View
	// that would need more ends.
	MaxBytes int
	// MaxObject bounds the size of an object in bytes; 0 means watchcodec.DefaultMaxFrame.
	MaxObject int
	// Frames and FrameBytes bound the events that are kept for clients that are behind or that
	// reconnect; 0 means 1,024 and 16 MiB. A client that is further behind gets a 410.
	Frames, FrameBytes int
	// WriteTimeout bounds the time that a client may take to accept the bytes that are ready for
	// it; 0 means 60 seconds, a negative value no bound.
	WriteTimeout time.Duration
	// SyncTimeout bounds the time that a request waits for a View that is not filled yet, before it
	// gets a 429 and has to be retried; 0 means 5 seconds, a negative value no bound.
	SyncTimeout time.Duration
	// InitialTimeout is that of source.Options.
	InitialTimeout time.Duration
	// BookmarkEvery is the interval of bookmarks on a watch without events; 0 means a minute, a
	// negative value that none are sent.
	BookmarkEvery time.Duration
	// Idle bounds how long a View without clients is kept; 0 means 5 minutes, a negative value no
	// bound.
	Idle time.Duration
	// Log receives failures that can't be reported to a client; nil means slog.Default().
	Log *slog.Logger
}

func (o *Options) check() error {
	if o.Renderer == nil {
		return errors.New("view: Options without a Renderer")
	}
	if min(o.MaxViews, o.MaxPending, o.MaxBytes, o.MaxObject, o.Frames, o.FrameBytes) < 0 {
		return errors.New("view: Options: a negative bound")
	}
	o.MaxViews = cmp.Or(o.MaxViews, 1000)
	o.MaxPending = cmp.Or(o.MaxPending, 32)
	o.Reauthorize = bound.OrDefault(o.Reauthorize, time.Minute)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<20)
	o.SyncTimeout = bound.OrDefault(o.SyncTimeout, 5*time.Second)
	o.Idle = bound.OrDefault(o.Idle, 5*time.Minute)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Caller == nil {
		o.Caller = credentials
	}
	return nil
}

// maxEvent bounds an event over WebSocket: an object of MaxObject may have been rendered larger.
func (o *Options) maxEvent() int {
	size := cmp.Or(o.MaxObject, watchcodec.DefaultMaxFrame)
	return size + min(size, math.MaxInt-size)
}

// credentials returns a hash of all that may authenticate the caller. It is hashed since it is kept
// as a key.
func credentials(r *http.Request) string {
	hash := sha256.New()
	var names []string
	for name := range r.Header {
		if name == "Authorization" || name == "Cookie" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(hash, "%q %q\n", name, r.Header[name])
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		fmt.Fprintf(hash, "certificate %x\n", r.TLS.PeerCertificates[0].Raw)
	}
	return string(hash.Sum(nil))
}
