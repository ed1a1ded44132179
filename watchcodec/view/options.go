package view

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
)

// Options configures Views.
type Options struct {
	// Renderer returns who renders the objects that a request asks for, the same for all
	// requests of one caller for one resource; nil from it means nobody: the request and
	// its answer pass. Required.
	Renderer func(*http.Request, watchcodec.Request) Renderer
	// Caller names who asks. Callers of the same name share Views, which are filled with
	// the credentials of the first of them: what they may see must be the same. nil tells
	// callers apart by all that proves who they are: Authorization, Cookie, the
	// Impersonate- and X-Remote- fields, and the client certificate.
	Caller func(*http.Request) string
	// AllowWrites lets PUT and PATCH pass; by default they are refused (403), since
	// writing back what was trimmed destroys the rest.
	AllowWrites bool
	// MaxViews bounds how many Views there are at a time; 0 means 1,000. A request for one more
	// ends the oldest View that was never filled, or gets a 503 if there is none.
	MaxViews int
	// MaxPending bounds how many Views that were never filled there are for the clients of one
	// IPv4 address or one IPv6 network of 64 bits; 0 means 32. A request for one more gets a 429.
	// The address is that of the connection, or the one that filters.RealIP has found out:
	// without RealIP all clients of a proxy in front share the bound.
	MaxPending int
	// Reauthorize bounds how long a caller keeps its View after its credentials or its rights are
	// withdrawn: the server is requested with them again at least that often, and if it refuses, the
	// View and its clients' watches end. 0 means 60 seconds. While the server is out of
	// reach, Views are served as they are.
	Reauthorize time.Duration
	// MaxBytes bounds the objects that one View holds, as the server has them and as
	// clients see them, in bytes as they are held, which may be compressed; 0 means 256
	// MiB. A View that would hold more ends.
	MaxBytes int
	// MaxObject bounds one object, in bytes; 0 means watchcodec.DefaultMaxFrame.
	MaxObject int
	// Frames and FrameBytes bound the events that are kept for clients that are behind or
	// come back; 0 means 1,024 and 16 MiB. A client that is further behind is told 410.
	Frames, FrameBytes int
	// WriteTimeout bounds the time that a client may take to accept what is there for it;
	// 0 means 60 seconds.
	WriteTimeout time.Duration
	// SyncTimeout is how long a request waits for a View that is not filled yet, before
	// it is told to come again (429); 0 means 5 seconds.
	SyncTimeout time.Duration
	// InitialTimeout is that of source.Options.
	InitialTimeout time.Duration
	// BookmarkEvery is the time between two bookmarks where nothing happens; 0 means a
	// minute.
	BookmarkEvery time.Duration
	// Idle is how long a View without clients stays; 0 means 5 minutes.
	Idle time.Duration
	// Log is told of what can't be told to a client; nil means slog.Default().
	Log *slog.Logger
}

func (o *Options) check() error {
	if o.Renderer == nil {
		return errors.New("view: Options without a Renderer")
	}
	bounds := min(o.MaxViews, o.MaxPending, o.MaxBytes, o.MaxObject, o.Frames, o.FrameBytes)
	times := min(o.Reauthorize, o.WriteTimeout, o.SyncTimeout, o.InitialTimeout, o.BookmarkEvery, o.Idle)
	if bounds < 0 || times < 0 {
		return errors.New("view: Options: a negative bound")
	}
	o.MaxViews = cmp.Or(o.MaxViews, 1000)
	o.MaxPending = cmp.Or(o.MaxPending, 32)
	o.Reauthorize = cmp.Or(o.Reauthorize, time.Minute)
	o.MaxBytes = cmp.Or(o.MaxBytes, 256<<20)
	o.SyncTimeout = cmp.Or(o.SyncTimeout, 5*time.Second)
	o.Idle = cmp.Or(o.Idle, 5*time.Minute)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Caller == nil {
		o.Caller = credentials
	}
	return nil
}

// credentials are all that may prove who asks, hashed: they are kept as a key.
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
