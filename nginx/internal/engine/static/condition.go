package static

import (
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// Since says what If-Modified-Since means.
type Since int

const (
	// Exact is the very time of the file.
	Exact Since = iota
	// Before is that time or a later one.
	Before
	// Ignored is nothing.
	Ignored
)

// conditions evaluates a request's conditions in nginx's way
// (ngx_http_not_modified_header_filter): If-Unmodified-Since and If-Match fail
// with 412; If-Modified-Since means the very time, and where both it and
// If-None-Match are sent, both must agree. 0 means that the file is wanted.
func conditions(h http.Header, etag string, c Content) int {
	modified := c.ModTime
	if v := h.Get("If-Unmodified-Since"); v != "" {
		if t, err := http.ParseTime(v); err == nil && modified.Unix() > t.Unix() {
			return http.StatusPreconditionFailed
		}
	}
	if v := joined(h, "If-Match"); v != "" && !matches(v, etag, false) {
		return http.StatusPreconditionFailed
	}
	since, none := h.Get("If-Modified-Since"), joined(h, "If-None-Match")
	if c.Since == Ignored {
		since = ""
	}
	if since == "" && none == "" {
		return 0
	}
	if since != "" && !c.Since.unchanged(since, modified) {
		return 0
	}
	if none != "" && !matches(none, etag, true) {
		return 0
	}
	return http.StatusNotModified
}

// Undated evaluates the conditions of a request for what has neither a time nor a tag:
// a condition that needs one fails. 0 means that it is wanted.
func Undated(h http.Header) int {
	match := joined(h, "If-Match")
	switch {
	case h.Get("If-Unmodified-Since") != "", match != "" && match != "*":
		return http.StatusPreconditionFailed
	case h.Get("If-Modified-Since") == "" && joined(h, "If-None-Match") == "*":
		return http.StatusNotModified
	}
	return 0
}

func joined(h http.Header, name string) string { return strings.Join(h[name], ", ") }

func (s Since) unchanged(v string, modified time.Time) bool {
	t, err := http.ParseTime(v)
	return err == nil && (t.Unix() == modified.Unix() || s == Before && t.Unix() > modified.Unix())
}

// matches looks for etag in a list of entity tags; "*" matches any. A weak tag
// counts if weak is set.
func matches(list, etag string, weak bool) bool {
	if list == "*" {
		return true
	}
	for item := range strings.SplitSeq(list, ",") {
		item = textproto.TrimString(item)
		if weak {
			item = strings.TrimPrefix(item, "W/")
		}
		if item == etag {
			return true
		}
	}
	return false
}
