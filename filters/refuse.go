package filters

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
)

// refusalTimeout bounds the time that a client may take to accept a refusal, to a quarter, where its server has no
// WriteTimeout.
const refusalTimeout = time.Minute

// refuse responds to r with a status and its text, in place of the next handler. A client that does not send
// the request's body can't hold the response up.
func refuse(w http.ResponseWriter, r *http.Request, status int) {
	clientbody.LeaveUnread(w, r)
	writeRefusal(w, r, status)
}

// writeRefusal writes a status and its text. The server writes them when the handler has returned: a client that accepts
// nothing must not hold the connection for ever.
func writeRefusal(w http.ResponseWriter, r *http.Request, status int) {
	http.Error(w, http.StatusText(status), status)
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s != nil && s.WriteTimeout > 0 {
		return // it bounds this, too
	}
	var writes deadline.Deadline
	writes.StartWrites(w, r, refusalTimeout)
	writes.Leave()
}
