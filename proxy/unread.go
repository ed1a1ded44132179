package proxy

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
)

// unread is what the client may have left to send of its request, behind a failure.
type unread int

const (
	nothingUnread unread = iota // the body has ended
	restUnread                  // the rest of it can be read
	brokenUnread                // a read of it has failed
)

// unreadOf returns the state of a body that no attempt has read.
func unreadOf(r *http.Request) unread {
	if clientbody.Remains(r) {
		return restUnread
	}
	return nothingUnread
}

// unread returns what the client may have left to send of r.
func (f *forwarding) unread(r *http.Request) unread {
	switch {
	case !f.body.Exists() && f.out != nil: // an upgrade, whose body may have been read
		return unreadOf(f.out.In)
	case !f.body.Exists():
		return unreadOf(r)
	case f.body.Client().Ended():
		return nothingUnread
	case f.body.Failure() != nil || f.body.Client().Failed():
		return brokenUnread
	}
	return restUnread
}

// bodyAgain returns failed.body. It is called before the body's Finish.
func (f *forwarding) bodyAgain() io.ReadCloser {
	switch {
	case f.body.Exists():
		return f.body.Again()
	case f.out != nil:
		return f.out.In.Body // of an upgrade, which may have been read
	}
	return nil
}

// leave is called before the response to err is begun.
func (left unread) leave(w http.ResponseWriter, r *http.Request, err *culvert.Error) {
	switch {
	case left == restUnread, left == brokenUnread && err.TargetSide():
		// A small rest is read: the connection is kept, and not reset under the response, as one is with bytes that
		// were not read.
		clientbody.LeaveUnread(w, r)
	case left == brokenUnread:
		clientbody.RefuseRest(w, r)
	}
}

// leavePanicked is deferred. Where a hook has panicked it bounds how long net/http's server waits for what the client has not
// sent of r, before it closes the connection.
func (f *forwarding) leavePanicked(r *http.Request, returned *bool) {
	switch {
	case *returned || f.unread(r) == nothingUnread:
	case !f.body.Exists(): // an upgrade, or no body was begun yet
		clientbody.LeaveUnread(f.client.Writer(), r)
	default:
		f.body.Client().HastenFinish()
	}
}
