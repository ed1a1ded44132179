package filters

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
)

// refuse responds to r with a status and its text, in place of the next handler. A client that does not send
// the request's body can't hold the response up.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	clientbody.LeaveUnread(w, r)
	writeRefusal(w, r, status)
}

// writeRefusal writes a status and its text. The server writes them when the handler has returned: a client that accepts
// nothing must not hold the connection for ever.
func writeRefusal(w http.ResponseWriter, r *http.Request, status int) {
	bounded := deadline.BoundOwn(w, r)
	http.Error(bounded, http.StatusText(status), status)
	bounded.Leave()
}
