package engine

import (
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// forceRangesModule sends the range that a client requests of an upstream's whole response (proxy_force_ranges and its kin, and always of
// memcached). Several ranges are sent as the whole, as nginx does without a cache.
var forceRangesModule = module{
	active: func(l *level) bool {
		p := *passSlot.of(l)
		return p != nil && p.family.slot.of(l).forceRanges && staticSlot.of(l).ranges > 0
	},
	hooks: hooks{body: cutRange},
}

func cutRange(x *exchange) culvert.Filter {
	if x.main != nil {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&rangeWriter{ResponseWriter: w, x: x}, r)
		})
	}
}

// rangeWriter writes the bytes of a response from and up to but not including to.
type rangeWriter struct {
	http.ResponseWriter
	x       *exchange
	decided bool
	cuts    bool // the response is a part
	drops   bool // nothing of it is written
	window
}

// Unwrap is for http.ResponseController.
func (c *rangeWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Discards reports whether content is discarded, so that the proxy need not wait for it.
func (c *rangeWriter) Discards() bool { return c.drops || response.Discards(c.ResponseWriter) }

// WriteHeader implements http.ResponseWriter.
func (c *rangeWriter) WriteHeader(status int) {
	if status >= 200 && !c.decided {
		c.decided = true
		if status == http.StatusOK && c.x.errStatus == 0 && c.x.proxy.responded {
			status = c.begin(c.Header())
		}
	}
	if !c.drops {
		c.ResponseWriter.WriteHeader(status)
	}
}

// begin turns the header of the whole into that of the response, and returns its status.
func (c *rangeWriter) begin(h http.Header) int {
	size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 63)
	if h.Del("Accept-Ranges"); err != nil {
		return http.StatusOK
	}
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	first, end, status := static.ForcedPart(c.x.HTTP.Header, h.Get("Etag"), modified, size)
	if status == http.StatusOK {
		h.Set("Accept-Ranges", "bytes")
		return status
	}
	c.x.proxy.reason = "" // that of a 200
	if c.drops = status == http.StatusRequestedRangeNotSatisfiable; c.drops {
		for _, name := range []string{"Content-Encoding", "Etag", "Last-Modified"} { // they are not the page's
			h.Del(name)
		}
		h.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		builtinPage(c.x, c.ResponseWriter, status)
		return status
	}
	c.cuts, c.from, c.to = true, first, end
	h.Set("Content-Range", "bytes "+strconv.FormatInt(first, 10)+"-"+strconv.FormatInt(end-1, 10)+"/"+strconv.FormatInt(size, 10))
	h.Set("Content-Length", strconv.FormatInt(end-first, 10))
	return status
}

// Write implements http.ResponseWriter.
func (c *rangeWriter) Write(p []byte) (int, error) {
	if !c.decided {
		c.WriteHeader(http.StatusOK)
	}
	switch {
	case c.drops:
		return len(p), nil
	case !c.cuts:
		return c.ResponseWriter.Write(p)
	}
	return c.window.write(c.ResponseWriter, p)
}
