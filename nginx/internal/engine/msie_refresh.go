package engine

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// msieModule has Internet Explorer redirected by a page (msie_refresh of ngx_http_core_module.c).
var msieModule = module{
	directives: []directive{
		{name: "msie_refresh", compile: setFlag(msieRefreshSlot, func(on *bool) *bool { return on })},
	},
}

var msieRefreshSlot = newSlot(false)

// refreshes reports whether a redirect is sent as a page: one of error_page to a URL regardless of its status, as in nginx, and others if they
// are 301 or 302.
func (x *exchange) refreshes(status int, byErrorPage bool) bool {
	return *msieRefreshSlot.of(x.level) && (byErrorPage || status == http.StatusMovedPermanently || status == http.StatusFound) &&
		vars.Explorer(x.HTTP.UserAgent()) && x.w.Header().Get("Location") != ""
}

// refresh sends a page that leads to the Location (ngx_http_send_refresh).
func (x *exchange) refresh(w http.ResponseWriter) {
	h := w.Header()
	to := h.Get("Location")
	if _, rest, ok := strings.Cut(to, "://"); ok && x.madeAbsolute {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			to = rest[i:] // as the configuration has it
		}
	}
	page := `<html><head><meta http-equiv="Refresh" content="0; URL=` + route.EscapeRefresh(to) + "\"></head><body></body></html>\r\n"
	h.Del("Location")
	x.errStatus, x.Status = http.StatusOK, http.StatusOK
	h.Set("Content-Type", "text/html")
	h.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method != http.MethodHead {
		_, _ = w.Write([]byte(page))
	}
}
