package static

import (
	"net/http"
	"net/textproto"
	"strings"
	"time"
)

// Since is the meaning of If-Modified-Since.
type Since int

const (
	// Exact requires the very time of the file.
	Exact Since = iota
	// Before accepts that time and later ones.
	Before
	// Ignored ignores the field.
	Ignored
)

// conditions evaluates a request's conditions in nginx's way
// (ngx_http_not_modified_header_filter): If-Unmodified-Since and If-Match fail with 412;
// If-Modified-Since means the very time, and if both it and If-None-Match are sent, both must
// match. 0 means that the file must be sent.
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

// Untagged evaluates the conditions of a request for content with a time and no tag. 0 means that
// the content must be sent.
func Untagged(h http.Header, modified time.Time, since Since) int {
	return conditions(h, noTag, Content{ModTime: modified, Since: since})
}

// noTag is equal to no item of a list.
const noTag = ","

// Undated evaluates the conditions of a request for content with neither a time nor a tag: a
// condition that needs one fails. 0 means that the content must be sent.
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

// matches reports whether etag is in a list of entity tags; "*" matches any. A weak tag matches
// only if weak is set.
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
