package engine

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// lacksNext reports whether a request whose last attempt has failed would have been sent to another server if one were live: nginx then
// records the upstream itself, in which it has found none (ngx_http_upstream_next, ngx_http_upstream_connect).
func (p *passRule) lacksNext(picker upstream.Picker, x *exchange, err *culvert.Error) bool {
	group, ok := picker.(*upstream.Group)
	if !ok || x.Upstream == nil || !err.TargetSide() {
		return false
	}
	retry, attempts := p.settings().retryRule(), len(x.Upstream.Attempts)
	switch {
	case attempts == 0, retry.Tries > 0 && attempts >= retry.Tries, retry.Timeout > 0 && time.Since(x.Start) >= retry.Timeout:
		return false
	case err.BytesSent && !retry.NonIdempotent && !idempotent(x.HTTP.Method):
		return false
	case err.Kind == culvert.Timeout && !retry.Timeouts, err.Kind != culvert.Timeout && err.Kind != culvert.DialFailed && !retry.Errors:
		return false
	}
	servers := 0
	for t := range group.Targets() {
		if !t.Target.Down {
			servers++
		}
	}
	return servers > attempts
}

// idempotent reports whether a request of a method may be sent twice (RFC 9110 section 9.2.2).
func idempotent(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
