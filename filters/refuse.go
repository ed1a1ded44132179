package filters

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/localerror"
)

// refuse responds to r with a status and its text, or to a gRPC call with a grpc-status, in place of the next handler. The response does not wait for the
// request's body.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	clientbody.LeaveUnread(w, r)
	writeRefusal(w, r, status)
}

// refuseError is refuse with the status of e, and its RetryAfter.
func refuseError(w http.ResponseWriter, r *http.Request, e *culvert.Error) {
	localerror.SetRetryAfter(w.Header(), e)
	refuse(w, r, e.Status())
}

// writeRefusal writes a status and its text. The server sends them after the handler has returned. That is bounded, so that
// a client that does not read can't hold the connection for ever.
func writeRefusal(w http.ResponseWriter, r *http.Request, status int) {
	bounded := deadline.BoundOwn(w, r)
	localerror.Write(bounded, r, status)
	bounded.Leave()
}
