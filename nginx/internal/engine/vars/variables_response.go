package vars

import (
	"fmt"
	"net/http"
	"strconv"
)

var responseVariables = map[string]Getter{
	"body_bytes_sent": known(func(r *Request) string { return strconv.FormatInt(r.BodyBytes, 10) }),
	"bytes_sent":      known(bytesSent),
	"gzip_ratio":      nonEmpty(gzipRatio),
	"limit_rate":      known(func(r *Request) string { return strconv.FormatInt(r.LimitRate, 10) }),
	"status":          known(func(r *Request) string { return fmt.Sprintf("%03d", r.Status) }),
}

// gzipRatio returns the ratio of the content's length before and after compression, rounded to
// hundredths (ngx_http_gzip_ratio_variable).
func gzipRatio(r *Request) string {
	if r.GzipIn == 0 || r.BodyBytes == 0 {
		return ""
	}
	n := (r.GzipIn*1000/r.BodyBytes + 5) / 10
	return fmt.Sprintf("%d.%02d", n/100, n%100)
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
