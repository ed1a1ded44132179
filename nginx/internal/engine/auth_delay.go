package engine

import (
	"net/http"
	"time"
)

// delayUnauthorized has a request wait that is refused for want of a password, so that one can't be found by trying
// (ngx_http_core_auth_delay). It returns early if the client leaves.
func (x *exchange) delayUnauthorized(status int) {
	d := accessSlot.of(x.level).delay
	if !lacksPassword(status) || d <= 0 {
		return
	}
	x.logAt(levelInfo, "delaying unauthorized request", "")
	x.wait(d)
}

// lacksPassword reports whether a request is refused for want of a password.
func lacksPassword(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// wait returns after d, or when the client has left.
func (x *exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.HTTP.Context().Done():
	}
}
