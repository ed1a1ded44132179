package engine

import (
	"net/http"
	"slices"
	"strings"
)

// framedTwice returns what is wrong with the names of a response's fields that declare where its body ends; "" if nothing is. Somewhere
// before us a response with two of them may have ended elsewhere (RFC 9112 section 6.3). nginx refuses it.
func framedTwice(names []string) string {
	length, coding := false, false
	for _, name := range names {
		switch {
		case strings.EqualFold(name, "Content-Length") && length, strings.EqualFold(name, "Transfer-Encoding") && coding:
			return "upstream sent duplicate header line: \"" + name + "\""
		case strings.EqualFold(name, "Content-Length"):
			length = true
		case strings.EqualFold(name, "Transfer-Encoding"):
			coding = true
		}
	}
	if length && coding {
		return "upstream sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"
	}
	return ""
}

// single are the fields of which an upstream's response has one line (ngx_http_upstream_process_header_line).
var single = []string{"Content-Type", "Date", "Etag", "Expires", "Last-Modified", "Location", "Refresh", "Server", "Status", "X-Accel-Expires", "X-Accel-Redirect"}

// ignoreRepeated drops further lines of fields of which there is one.
func ignoreRepeated(h http.Header) {
	for name, lines := range h {
		if len(lines) > 1 && slices.Contains(single, name) {
			h[name] = lines[:1]
		}
	}
}
