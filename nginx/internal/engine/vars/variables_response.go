package vars

import (
	"fmt"
	"net/http"
	"strconv"
)

var responseVariables = map[string]Getter{
	"body_bytes_sent": known(func(r *Request) string { return strconv.FormatInt(r.BodyBytes, 10) }),
	"bytes_sent":      known(bytesSent),
	"status":          known(func(r *Request) string { return fmt.Sprintf("%03d", r.Status) }),
}

// bytesSent counts the content and the header as HTTP/1.1 would write it, as far as the engine
// knows it: what net/http adds at the end is not counted.
func bytesSent(r *Request) string {
	n := int64(len("HTTP/1.1 200 \r\n\r\n") + len(http.StatusText(r.Status)))
	for name, lines := range r.Header {
		for _, line := range lines {
			n += int64(len(name) + len(line) + len(": \r\n"))
		}
	}
	return strconv.FormatInt(n+r.BodyBytes, 10)
}
