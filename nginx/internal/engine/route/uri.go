// Package route implements nginx's routing as pure functions: how a path is normalised, which
// location it belongs to, which server a name belongs to.
package route

import (
	"errors"
	"strings"
)

// ErrURI is returned for a path that can't be normalised: the response must be a 400.
var ErrURI = errors.New("invalid path in request")

// Split splits a request target at its query. A fragment, which no client should send, is dropped
// as in nginx.
func Split(target string) (path, args string) {
	target, _, _ = strings.Cut(target, "#")
	path, args, _ = strings.Cut(target, "?")
	return path, args
}

// Normalize decodes a path and resolves "." and ".." in the result, so that "%2e%2e%2f" is
// resolved too; it merges slashes if merge is set (ngx_http_parse_complex_uri). The result starts
// with a slash and has no "." or ".." segment. For a malformed escape, a zero byte or a path that
// climbs above the root the error is ErrURI.
func Normalize(path string, merge bool) (string, error) {
	if path == "" || path[0] != '/' {
		return "", ErrURI
	}
	if simple(path) {
		return path, nil
	}
	decoded, err := decode(path)
	if err != nil {
		return "", err
	}
	return resolve(decoded, merge)
}

// simple reports whether path is its own normal form.
func simple(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case c == '%' || c == 0:
			return false
		case c == '/' && i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.'):
			return false
		}
	}
	return true
}

func decode(path string) (string, error) {
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			if i+2 >= len(path) {
				return "", ErrURI
			}
			hi, lo := unhex(path[i+1]), unhex(path[i+2])
			if hi < 0 || lo < 0 {
				return "", ErrURI
			}
			c = byte(hi<<4 | lo)
			i += 2
		}
		if c == 0 {
			return "", ErrURI
		}
		b = append(b, c)
	}
	return string(b), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// resolve removes dot segments and, if merge is set, empty ones.
func resolve(path string, merge bool) (string, error) {
	segments := strings.Split(path[1:], "/")
	out := make([]string, 0, len(segments))
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "." || s == "..":
			if s == ".." {
				if len(out) == 0 {
					return "", ErrURI
				}
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "") // "/a/." is "/a/"
			}
		case s == "" && merge && !last:
		default:
			out = append(out, s)
		}
	}
	return "/" + strings.Join(out, "/"), nil
}

// Escape escapes a decoded path as nginx sends it: control characters, bytes above 0x7e and those
// with a meaning in a path (NGX_ESCAPE_URI of ngx_escape_uri).
func Escape(path string) string { return escape(path, "\"#%<>?\\^`{|}") }

// EscapeArgs escapes a decoded text as nginx does for a query (NGX_ESCAPE_ARGS).
func EscapeArgs(text string) string { return escape(text, "\"#%&+;<>?\\^`{|}") }

// EscapeRefresh escapes a URL inside a page (NGX_ESCAPE_REFRESH).
func EscapeRefresh(url string) string { return escape(url, "\"'<>\\^`{|~") }

// escape escapes control characters, blanks, bytes above 0x7e and those of unsafe.
func escape(text, unsafe string) string {
	const hex = "0123456789ABCDEF"
	must := func(c byte) bool { return c <= ' ' || c >= 0x7f || strings.IndexByte(unsafe, c) >= 0 }
	n := 0
	for i := range len(text) {
		if must(text[i]) {
			n++
		}
	}
	if n == 0 {
		return text
	}
	b := make([]byte, 0, len(text)+2*n)
	for i := range len(text) {
		if c := text[i]; must(c) {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}
