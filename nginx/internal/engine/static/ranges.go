package static

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// span is a part of a file: from start up to but not including end.
type span struct{ start, end int64 }

func (s span) length() int64 { return s.end - s.start }

func (s span) contentRange(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", s.start, s.end-1, size)
}

// Part evaluates the conditions and the range of a request for content of size bytes that a server
// sends in parts. status is 200, or 206 for one range, whose bytes are from start up to but not
// including end; else 304, 412 or 416. Several ranges mean the whole.
func Part(h http.Header, etag string, modified time.Time, size int64, since Since) (start, end int64, status int) {
	if etag == "" {
		etag = noTag
	}
	if status = conditions(h, etag, Content{ModTime: modified, Since: since}); status != 0 {
		return 0, 0, status
	}
	return ForcedPart(h, etag, modified, size)
}

// ForcedPart evaluates the range of a request for content of size bytes of a server that may not know ranges. Its results are those of Part;
// conditions are that server's matter.
func ForcedPart(h http.Header, etag string, modified time.Time, size int64) (start, end int64, status int) {
	if etag == "" {
		etag = noTag
	}
	ranges, ok := requestedRanges(h, etag, modified, size)
	switch {
	case !ok:
		return 0, 0, http.StatusRequestedRangeNotSatisfiable
	case len(ranges) == 1:
		return ranges[0].start, ranges[0].end, http.StatusPartialContent
	}
	return 0, size, http.StatusOK
}

// requestedRanges parses Range and If-Range as ngx_http_range_header_filter does. No ranges mean
// the whole file; ok is false for 416. Ranges that sum up to more than the file mean the whole
// file, too.
func requestedRanges(h http.Header, etag string, modified time.Time, size int64) (ranges []span, ok bool) {
	value := h.Get("Range")
	if len(value) < 7 || !strings.EqualFold(value[:6], "bytes=") {
		return nil, true
	}
	if v := h.Get("If-Range"); v != "" && v != etag && !(v[len(v)-1] != '"' && Exact.unchanged(v, modified)) {
		return nil, true
	}
	total := int64(0)
	for item := range strings.SplitSeq(value[6:], ",") {
		s, valid := parseSpan(strings.Trim(item, " "), size)
		if !valid {
			return nil, false
		}
		if s.start < s.end {
			ranges = append(ranges, s)
			if total > math.MaxInt64-s.length() {
				return nil, false
			}
			total += s.length()
		}
	}
	switch {
	case len(ranges) == 0:
		return nil, false
	case total > size:
		return nil, true
	}
	return ranges, true
}

// parseSpan parses "first-last", "first-" or "-length". The result is empty if it is outside of
// the file.
func parseSpan(s string, size int64) (span, bool) {
	first, last, ok := strings.Cut(s, "-")
	first, last = strings.Trim(first, " "), strings.Trim(last, " ")
	if !ok || first == "" && last == "" {
		return span{}, false
	}
	if first == "" {
		n, ok := number(last)
		return span{max(size-n, 0), size}, ok
	}
	start, ok := number(first)
	if !ok {
		return span{}, false
	}
	end := size
	if last != "" {
		n, ok := number(last)
		if !ok {
			return span{}, false
		}
		end = min(n, size-1) + 1
	}
	return span{start, end}, true
}

func number(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
