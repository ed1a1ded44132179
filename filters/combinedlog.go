package filters

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/header"
)

// CombinedLog returns a filter that writes one line for each request to w in
// nginx's "combined" format:
//
//	$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"
//
// The line is written with one Write when the response has ended. Writes never
// overlap. $remote_user is the user of Result.User or, if none was authenticated, the name in the request. Bytes outside of printable ASCII, quotes and backslashes are written as
// \xHH, as nginx escapes them, so that a request can't forge a line. Errors of w are
// ignored: a full disk must not stop the traffic. CombinedLog panics if w is nil.
func CombinedLog(w io.Writer) culvert.Filter {
	if w == nil {
		panic("filters: CombinedLog: the io.Writer is nil")
	}
	var mu sync.Mutex
	lines := sync.Pool{New: func() any { return new([]byte) }}
	return observe(func(*http.Request) {}, func(r *http.Request, o Observation) {
		line := lines.Get().(*[]byte)
		*line = combinedLine((*line)[:0], r, o)
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(*line)
		if cap(*line) <= 4<<10 { // the buffer of a huge request is not kept
			lines.Put(line)
		}
	})
}

func combinedLine(b []byte, r *http.Request, o Observation) []byte {
	user := o.Result.User
	if user == "" {
		user, _, _ = header.BasicAuth(r)
	}
	b = appendEscaped(b, clientHost(r))
	b = append(b, " - "...)
	b = appendEscaped(b, user)
	b = append(b, " ["...)
	b = o.Start.Add(o.Duration).AppendFormat(b, "02/Jan/2006:15:04:05 -0700")
	b = append(b, `] "`...)
	b = append(appendEscaped(b, r.Method), ' ')
	b = append(appendEscaped(b, r.RequestURI), ' ')
	b = appendEscaped(b, r.Proto)
	b = append(b, `" `...)
	b = strconv.AppendInt(b, int64(o.Status), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, o.Bytes, 10)
	b = append(b, ` "`...)
	b = appendEscaped(b, r.Referer())
	b = append(b, `" "`...)
	b = appendEscaped(b, r.UserAgent())
	return append(b, '"', '\n')
}

// appendEscaped appends s, escaped as by ngx_http_log_escape; "" is appended as "-".
func appendEscaped(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 || c >= 0x7f || c == '"' || c == '\\':
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// clientHost returns the client's address: the one that RealIP has found, else the peer's.
func clientHost(r *http.Request) string {
	if addr := client.Addr(r); addr.IsValid() {
		if text := r.RemoteAddr; addr.Is4() && client.From(r.Context()) == nil {
			if i := strings.LastIndexByte(text, ':'); i > 0 && text[0] != '[' {
				return text[:i] // the text of addr without an allocation
			}
		}
		return addr.String()
	}
	return r.RemoteAddr
}
