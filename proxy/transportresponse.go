package proxy

import (
	"errors"
	"net/http"
)

// checkInterim refuses what is no interim response of a transport. HTTP/2 knows no 101 (RFC 9113 section 8.6), which net/http's
// transport takes for an interim response there.
func checkInterim(status int) error {
	if status == http.StatusSwitchingProtocols {
		return errors.New("status 101 as an interim response")
	}
	return nil
}
