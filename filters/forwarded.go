package filters

import (
	"net/textproto"
	"strings"
)

// parseForwarded parses one line of the header field Forwarded (RFC 7239 section 4). It
// returns the elements, each as a map of its parameters with lower-case names. ok is false
// if the line is malformed; then no part of it may be used.
func parseForwarded(line string) (elements []map[string]string, ok bool) {
	element := map[string]string{}
	for rest := line; ; {
		name, after, found := strings.Cut(rest, "=")
		if !found {
			return nil, false
		}
		value, after, ok := forwardedValue(after)
		if !ok {
			return nil, false
		}
		element[strings.ToLower(textproto.TrimString(name))] = value
		after = textproto.TrimString(after)
		if after == "" {
			return append(elements, element), true
		}
		switch after[0] {
		case ',':
			elements = append(elements, element)
			element = map[string]string{}
		case ';':
		default:
			return nil, false
		}
		rest = after[1:]
	}
}

// forwardedValue parses a token or a quoted-string at the beginning of s.
func forwardedValue(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		end := strings.IndexAny(s, ",; \t")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
