package engine

import (
	"net/http"
	"strconv"
	"strings"
)

// requestHost returns the name in a Host field or in an absolute target: without the port and the last dot, in lower case. ok
// is false for what nginx refuses (ngx_http_validate_host): what RFC 3986 section 3.2.2 does not have as a host, and besides
// that an empty name, two dots in a row, and a port above 65535.
func requestHost(field string) (name string, ok bool) {
	name, port := field, ""
	marks := nameMarks
	if strings.HasPrefix(field, "[") {
		end := strings.IndexByte(field, ']')
		if end < 0 {
			return "", false
		}
		name, port = field[1:end], field[end+1:]
		marks = literalMarks
	} else if i := strings.IndexByte(field, ':'); i >= 0 {
		name, port = field[:i], field[i:]
	}
	if !isPort(port) || strings.Contains(name, "..") || !consistsOf(name, marks) {
		return "", false
	}
	if marks == literalMarks {
		name = field[:len(name)+len("[]")]
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name, name != ""
}

// What a host has besides letters and digits.
const (
	unreserved   = "-._~!$&'()*+,;="
	nameMarks    = unreserved + "%"
	literalMarks = unreserved + ":"
	strictMarks  = "-." // in front of the path of an absolute target (ngx_http_parse_request_line)
)

// consistsOf reports whether text has nothing but letters, digits and marks.
func consistsOf(text, marks string) bool {
	for i := range len(text) {
		if c := text[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte(marks, c) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isPort reports whether text is a port behind a colon, which may be empty, or nothing.
func isPort(text string) bool {
	digits, ok := strings.CutPrefix(text, ":")
	if !ok {
		return text == ""
	}
	if digits == "" {
		return true
	}
	_, err := strconv.ParseUint(digits, 10, 16)
	return err == nil
}

// targetHost returns the host and the port in a request target that has them: an absolute URI, or the target of CONNECT. ok is
// false for a malformed target, which is no path either (ngx_http_parse_request_line).
func targetHost(method, target string) (authority string, has, ok bool) {
	if method == http.MethodConnect {
		i := strings.LastIndexByte(target, ':')
		return target, true, i >= 0 && i+1 < len(target) && isPort(target[i:]) && consistsOf(target[:i], "[]"+literalMarks)
	}
	if strings.HasPrefix(target, "/") {
		return "", false, true
	}
	scheme, rest, found := strings.Cut(target, "://")
	if !found || scheme == "" || !isLetter(scheme[0]) || !consistsOf(scheme, "+-.") {
		return "", false, false
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	host, _, _ := strings.Cut(rest, ":")
	return rest, true, strings.HasPrefix(rest, "[") || consistsOf(host, strictMarks)
}

// validMethod reports whether nginx knows a method's spelling: RFC 9110 section 9.1 allows any token.
func validMethod(method string) bool {
	for i := range len(method) {
		if c := method[i]; (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return false
		}
	}
	return method != ""
}
