package filters

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
)

// refuse responds to r with a status and its text, in place of the next handler. The response does not wait for the
// request's body.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	clientbody.LeaveUnread(w, r)
	writeRefusal(w, r, status)
}

// writeRefusal writes a status and its text. The server sends them after the handler has returned. That is bounded, so that
// a client that does not read can't hold the connection for ever.
func writeRefusal(w http.ResponseWriter, r *http.Request, status int) {
	bounded := deadline.BoundOwn(w, r)
	http.Error(bounded, http.StatusText(status), status)
	bounded.Leave()
}
