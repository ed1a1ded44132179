package clientbody

import (
	"net/http"
	"time"
)

// unreadTime is how long a client may take to send what no handler reads.
const unreadTime = 5 * time.Second

// LeaveUnread is called by a handler that is about to respond without having read r's body to its end, where no Body
// bounds the reads of it. Over HTTP/1 net/http's server reads a part of what is left before it sends the header, and waits
// without end for a client that sends nothing: the response would never be sent, and the connection be held. Behind
// 5 seconds it closes the connection with the response instead. It sets a deadline of its own before the next request.
//
// Over HTTP/2 the stream ends with the handler.
func LeaveUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTime))
	}
}
