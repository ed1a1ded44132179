package engine

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// sliceModule requests a response in slices, by $slice_range (ngx_http_slice_filter_module.c).
var sliceModule = module{
	directives: []directive{
		{name: "slice", compile: setSize(sliceSlot, func(size *int64) *int64 { return size })},
	},
	variables: map[string]variable{"slice_range": sliceRange},
	active:    func(l *level) bool { return *sliceSlot.of(l) > 0 },
	hooks:     hooks{body: joinSlices},
}

var sliceSlot = newSlot(int64(0))

// slicing are the slices of one response. Its parts share them.
type slicing struct {
	size  int64
	start int64 // of the slice that is requested next
	etag  string
	total int64 // the length of the whole
}

// sliceRange returns $slice_range. The first use of a request begins its slices.
func sliceRange(x *exchange) (string, bool) {
	if x.slices == nil {
		size := *sliceSlot.of(x.level)
		if x.main != nil || x.Status != 0 || size == 0 {
			return "", false
		}
		x.slices = &slicing{size: size, start: firstSlice(x.HTTP.Header) / size * size}
	}
	s := x.slices
	return "bytes=" + strconv.FormatInt(s.start, 10) + "-" + strconv.FormatInt(s.start+s.size-1, 10), true
}

// firstSlice returns where the one range of a request begins, 0 if that is not known.
func firstSlice(h http.Header) int64 {
	value := h.Get("Range")
	if len(value) < 7 || !strings.EqualFold(value[:6], "bytes=") || h.Get("If-Range") != "" || strings.Contains(value, ",") {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimLeft(value[6:], " "), "-")
	n, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// errSlice is the error of a slice that does not belong to the others, which has been logged.
var errSlice = errors.New("a slice does not fit")

// accept checks the header of the slice that was requested last, and returns its place.
func (s *slicing) accept(x *exchange, status int, h http.Header) (start, end int64, err error) {
	fail := func(why string) (int64, int64, error) {
		x.logError(why)
		return 0, 0, errSlice
	}
	if status != http.StatusPartialContent {
		return fail("unexpected status code " + strconv.Itoa(status) + " in slice response")
	}
	etag := h.Get("Etag")
	if s.etag != "" && etag != s.etag {
		return fail("etag mismatch in slice response")
	}
	s.etag = etag
	start, end, total, ok := contentRange(h.Get("Content-Range"))
	switch {
	case !ok:
		return fail("invalid range in slice response")
	case total < 0:
		return fail("no complete length in slice response")
	}
	if want := min(start+s.size, total); start != s.start || end != want {
		return fail("unexpected range in slice response: " + strconv.FormatInt(start, 10) + "-" + strconv.FormatInt(end, 10) +
			", expected: " + strconv.FormatInt(s.start, 10) + "-" + strconv.FormatInt(want, 10))
	}
	s.start, s.total = end, total
	return start, end, nil
}

// contentRange parses "bytes first-last/length" (RFC 9110 section 14.4). end is behind the last
// byte, and total -1 for "*".
func contentRange(value string) (start, end, total int64, ok bool) {
	rest, ok := strings.CutPrefix(value, "bytes ")
	span, length, slash := strings.Cut(rest, "/")
	first, last, dash := strings.Cut(span, "-")
	start, err := strconv.ParseInt(strings.TrimSpace(first), 10, 63)
	end, err2 := strconv.ParseInt(strings.TrimSpace(last), 10, 63)
	if !ok || !slash || !dash || err != nil || err2 != nil || start < 0 || end < start {
		return 0, 0, 0, false
	}
	if length = strings.TrimSpace(length); length == "*" {
		return start, end + 1, -1, true
	}
	total, err = strconv.ParseInt(length, 10, 63)
	return start, end + 1, total, err == nil && total > end
}

// joinSlices serves the whole of which an upstream sends slices, or the range of it that the
// client requests.
func joinSlices(x *exchange) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			j := &sliceWriter{ResponseWriter: w, x: x}
			next.ServeHTTP(j, r)
			if err := j.finish(); err != nil {
				panic(http.ErrAbortHandler)
			}
		})
	}
}

// sliceWriter receives the first slice of a response, or another one, and writes the bytes of the
// whole from and up to but not including to.
type sliceWriter struct {
	http.ResponseWriter
	x     *exchange
	joins bool // the response is made of slices
	drops bool // nothing of the slice is written
	window
}

// Unwrap is for http.ResponseController.
func (j *sliceWriter) Unwrap() http.ResponseWriter { return j.ResponseWriter }

// Discards reports whether content is discarded, so that the proxy need not wait for it.
func (j *sliceWriter) Discards() bool { return j.drops || response.Discards(j.ResponseWriter) }

// WriteHeader implements http.ResponseWriter.
func (j *sliceWriter) WriteHeader(status int) {
	if x := j.x; x.slices != nil && status >= 200 && !x.joined {
		x.joined = true
		switch {
		case x.main != nil:
			status = x.acceptSlice(status, j.Header())
		case status != http.StatusPartialContent:
			x.slices = nil
		default:
			j.joins = true
			status = j.begin(j.Header())
		}
	}
	j.ResponseWriter.WriteHeader(status)
}

// acceptSlice checks the header of a slice behind the first. The response can't be completed
// without it.
func (x *exchange) acceptSlice(status int, h http.Header) int {
	if _, _, err := x.slices.accept(x, status, h); err != nil {
		panic(http.ErrAbortHandler)
	}
	return http.StatusOK
}

// begin turns the header of the first slice into that of the response, and returns its status.
func (j *sliceWriter) begin(h http.Header) int {
	s := j.x.slices
	start, _, err := s.accept(j.x, http.StatusPartialContent, h)
	if err != nil {
		panic(http.ErrAbortHandler) // as nginx, which closes the connection
	}
	h.Del("Content-Range")
	h.Del("Accept-Ranges")
	j.x.proxy.reason = "" // that of a 206
	modified, _ := http.ParseTime(h.Get("Last-Modified"))
	first, end, status := static.Part(j.x.HTTP.Header, h.Get("Etag"), modified, s.total, staticSlot.of(j.x.level).since)
	j.at, j.from, j.to = start, first, end
	switch status {
	case http.StatusOK:
		h.Set("Accept-Ranges", "bytes")
	case http.StatusPartialContent:
		h.Set("Content-Range", "bytes "+strconv.FormatInt(first, 10)+"-"+strconv.FormatInt(end-1, 10)+"/"+strconv.FormatInt(s.total, 10))
	case http.StatusRequestedRangeNotSatisfiable:
		h.Set("Content-Range", "bytes */"+strconv.FormatInt(s.total, 10))
	}
	if j.drops = status >= http.StatusMultipleChoices; j.drops {
		h.Del("Content-Type")
	}
	if h.Set("Content-Length", strconv.FormatInt(end-first, 10)); status == http.StatusNotModified {
		h.Del("Content-Length")
	}
	if s.start+s.size <= first {
		s.start = first / s.size * s.size // the slice has nothing of the range
	}
	return status
}

// Write implements http.ResponseWriter.
func (j *sliceWriter) Write(p []byte) (int, error) {
	switch {
	case j.drops:
		return len(p), nil
	case !j.joins:
		return j.ResponseWriter.Write(p)
	}
	return j.window.write(j.ResponseWriter, p)
}

// finish requests the other slices. The content of each must be whole.
func (j *sliceWriter) finish() error {
	if !j.joins || j.drops || j.x.HTTP.Method == http.MethodHead {
		return nil
	}
	for s := j.x.slices; s.start < j.to; {
		j.at = s.start
		sub, err := j.x.subrequest(j.x.URI, j.x.Args, j)
		if err != nil {
			return err
		}
		sub.repeat(j.x)
		if err := j.x.include(sub); err != nil {
			return err
		}
		if j.at != s.start {
			j.x.logError("missing slice response")
			return errIncomplete
		}
	}
	return nil
}

// repeat makes a subrequest one for the next slice of x's response, in the same location and with
// the same target. Its content is changed together with that of the others.
func (sub *exchange) repeat(x *exchange) {
	sub.slices, sub.level = x.slices, x.level
	sub.Internal, sub.uriChanged, sub.uriRewritten = x.Internal, x.uriChanged, x.uriRewritten
	sub.proxy.uri = x.proxy.uri
}
