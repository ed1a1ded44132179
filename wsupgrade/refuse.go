package wsupgrade

import (
	"net/http"
)

// Refuse answers with the status of e and its text. A 426 says what to ask for
// (RFC 6455 section 4.4). It must not be called when e.HeadSent is set or when the
// client is gone.
func Refuse(w http.ResponseWriter, e *Error) {
	status := e.Status()
	if status == http.StatusUpgradeRequired {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Version", "13")
	}
	http.Error(w, http.StatusText(status), status)
}
