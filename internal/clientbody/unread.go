package clientbody

import (
	"net/http"
	"time"
)

// unreadTime is how long a client may take to send what no handler reads.
const unreadTime = 5 * time.Second

// LeaveUnread is called by a handler that is about to respond without having read r's body to its end, where no Body
// bounds the reads of it. Over HTTP/1 net/http's server reads a part of the rest before it sends the header, and waits
// without end for a client that sends nothing: the response would never be sent, and the connection be held. Behind
// 5 seconds it closes the connection with the response instead. It sets a deadline of its own before the next request.
//
// Over HTTP/2 the stream ends with the handler.
func LeaveUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
	}
}

// RefuseRest is called by a handler that is about to respond to r and has the rest of its body not read at all: net/http's
// server closes the connection behind the response, and waits for nothing before. It is for a body that is too large, and for
// one that is broken, behind which it is unknown where the next request begins. Behind a whole one net/http reads to notice
// a client that leaves: were that read to fail, the request would be cancelled.
func RefuseRest(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 { // for HTTP/2 it would end all streams of the connection
		w.Header().Set("Connection", "close")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
}

// LeavePanicked is LeaveUnread unless *returned. It is deferred around what a program's function may leave by a panic: over
// HTTP/1 net/http's server reads a part of the rest of the body before it closes the connection, and a filter around may
// respond. It must not run when the connection has been hijacked for a tunnel that lasts.
func LeavePanicked(w http.ResponseWriter, r *http.Request, returned *bool) {
	if !*returned {
		LeaveUnread(w, r)
	}
}

// HastenFinish has Finish leave the client no more time than LeaveUnread does, for what net/http's server reads behind it. It
// is called before Finish where a panic ends the handler.
func (b *Body) HastenFinish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads.Change(0, time.Now().Add(unreadTime))
}
