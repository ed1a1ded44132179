package wsupgrade

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/localerror"
)

// Refuse writes a response with the status of e and its text, never with the cause, which may name
// targets. A 426 names the protocol to request: that of the Upgrade field that w.Header() already
// holds, else websocket, in version 13 (RFC 6455 section 4.4); over HTTP/2, which forbids Upgrade,
// the version alone. RetryAfter is sent as Retry-After, in whole seconds, rounded up. Refuse must
// not be called when e.HeaderSent is set or when the client is gone, and panics if e is nil. The
// caller must bound how long the client may take to accept the response, by
// http.Server.WriteTimeout for instance.
func Refuse(w http.ResponseWriter, e *culvert.Error) {
	if e == nil {
		panic("wsupgrade: Refuse: nil Error")
	}
	if e.Status() == http.StatusUpgradeRequired {
		h := w.Header()
		if h.Get("Upgrade") == "" {
			h.Set("Upgrade", "websocket")
		}
		if isWebSocket(h.Get("Upgrade")) {
			h.Set("Sec-WebSocket-Version", "13")
		}
		h.Set("Connection", "Upgrade")
		if overHTTP2(w) {
			delete(h, "Connection")
			delete(h, "Upgrade")
		}
	}
	localerror.WriteError(w, nil, e)
}

// refuse is Refuse for a client that may neither send the rest of its request nor accept the
// response: it bounds how long such a client holds the connection.
func refuse(w http.ResponseWriter, r *http.Request, e *culvert.Error) {
	clientbody.LeaveUnread(w, r)
	bounded := deadline.BoundOwn(w, r)
	Refuse(bounded, e)
	bounded.Leave()
}

// overHTTP2 reports whether w is, or wraps, net/http's writer for HTTP/2, which can push. A wrapper
// of one for HTTP/1.1 may have the method as well.
func overHTTP2(w http.ResponseWriter) bool {
	for {
		outer, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			_, pushes := w.(http.Pusher)
			return pushes
		}
		w = outer.Unwrap()
	}
}
