package vars

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert"
)

// The variables of several attempts are lists: "a, b", and "a : b" if an internal redirect is
// between the two.
var upstreamVariables = map[string]Getter{
	"proxy_add_x_forwarded_for":    known(forwardedFor),
	"upstream_addr":                perTry(func(t culvert.Attempt) string { return t.Target }),
	"upstream_cache_etag":          none, // there is no cache
	"upstream_cache_last_modified": none,
	"upstream_cache_status":        none,
	"upstream_bytes_received":      perTry(func(t culvert.Attempt) string { return wireBytes(t, t.WireReceived) }),
	"upstream_bytes_sent":          perTry(func(t culvert.Attempt) string { return wireBytes(t, t.WireSent) }),
	"upstream_connect_time":        perTry(upstreamConnectTime),
	"upstream_response_length":     perTry(func(t culvert.Attempt) string { return strconv.FormatInt(t.Received, 10) }),
	"upstream_header_time":         perTry(upstreamHeaderTime),
	"upstream_response_time":       perTry(upstreamResponseTime),
	"upstream_status":              perTry(upstreamStatus),
}

func perTry(get func(culvert.Attempt) string) Getter {
	return func(r *Request) (string, bool) {
		if r.Upstream == nil || len(r.Upstream.Attempts) == 0 {
			return "", false
		}
		if len(r.Upstream.Attempts) == 1 {
			return get(r.Upstream.Attempts[0]), true
		}
		var list strings.Builder
		for i, t := range r.Upstream.Attempts {
			switch {
			case slices.Contains(r.passed, i):
				list.WriteString(" : ")
			case i > 0:
				list.WriteString(", ")
			}
			list.WriteString(get(t))
		}
		return list.String(), true
	}
}

// wireBytes returns "-" where the bytes of a response were not counted.
func wireBytes(t culvert.Attempt, n int64) string {
	if t.WireReceived == 0 && t.Status != 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// upstreamResponseTime returns "-" until the whole response has been received.
func upstreamResponseTime(t culvert.Attempt) string {
	if t.Total == 0 {
		return "-"
	}
	return Seconds(t.Total)
}

// upstreamConnectTime returns "-" for an attempt that got no connection.
func upstreamConnectTime(t culvert.Attempt) string {
	if t.TimeToConnect == 0 {
		return "-"
	}
	return Seconds(t.TimeToConnect)
}

func upstreamHeaderTime(t culvert.Attempt) string {
	if t.Status == 0 {
		return "-"
	}
	return Seconds(t.TimeToHeader)
}

// upstreamStatus returns the status of an attempt's response. Without a response it is 502 or,
// after a timeout, 504; it is "-" if the client was to blame.
func upstreamStatus(t culvert.Attempt) string {
	if t.Status != 0 {
		return strconv.Itoa(t.Status)
	}
	var e *culvert.Error
	switch {
	case !errors.As(t.Err, &e):
		return "502"
	case e.ClientSide():
		return "-"
	}
	return strconv.Itoa(e.Status())
}

func upstreamField(rest string) Getter {
	name := field(rest)
	return func(r *Request) (string, bool) { return joined(r.UpstreamHeader[name], ", ") }
}

// upstreamCookie returns a cookie that the upstream sets. Only blanks may stand around the equals sign, and what is in front of a
// semicolon is the value (ngx_http_parse_set_cookie_lines).
func upstreamCookie(name string) Getter {
	return func(r *Request) (string, bool) {
		for _, line := range r.UpstreamHeader["Set-Cookie"] {
			if len(line) <= len(name) || !strings.EqualFold(line[:len(name)], name) {
				continue
			}
			if value, ok := strings.CutPrefix(strings.TrimLeft(line[len(name):], " "), "="); ok {
				value, _, _ = strings.Cut(strings.TrimLeft(value, " "), ";")
				return value, true
			}
		}
		return "", false
	}
}
