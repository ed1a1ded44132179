package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// unique are the fields that nginx refuses a request for in which they stand twice (ngx_http_process_unique_header_line).
var unique = []string{"Authorization", "Content-Range", "Expect", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range",
	"If-Unmodified-Since"}

// checkRequest returns the status by which nginx refuses a request for its method or its header fields, 0 for none
// (ngx_http_process_request_header).
func checkRequest(x *exchange) int {
	r := x.HTTP
	for _, name := range unique {
		if len(r.Header[name]) > 1 {
			x.logError("client sent duplicate header line: \"" + name + "\"") // its value may be a secret
			return http.StatusBadRequest
		}
	}
	if lengths(fieldnames.Of(r.Context())) > 1 {
		x.logError("client sent duplicate header line: \"Content-Length\"")
		return http.StatusBadRequest
	}
	if r.Method == http.MethodTrace || r.Method == http.MethodConnect && r.ProtoMajor == 1 {
		return http.StatusMethodNotAllowed
	}
	return 0
}

// lengths counts the lines of Content-Length: the server has made one of those that are equal.
func lengths(names fieldnames.List) (n int) {
	for _, name := range names {
		if strings.EqualFold(name, "Content-Length") {
			n++
		}
	}
	return n
}
