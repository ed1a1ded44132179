package filters

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/clientbody"
)

// refuse responds to r with a status and its text, in place of the next handler. A client that does not send
// the request's body can't hold the response up.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	clientbody.LeaveUnread(w, r)
	http.Error(w, http.StatusText(status), status)
}
