package listing

import (
	"strings"
	"time"
)

// htmlEscaper is ngx_escape_html.
var htmlEscaper = strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "\"", "&quot;")

// escapeComponent escapes all but "unreserved" characters of a URI (NGX_ESCAPE_URI_COMPONENT).
func escapeComponent(name string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		if c := name[i]; unreserved(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func unreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// gmtime returns nginx's time: times before 1970 are 1970.
func gmtime(seconds int64) time.Time { return time.Unix(max(seconds, 0), 0).UTC() }

// characters counts the characters of a name in UTF-8; ok is false if it is not UTF-8 to nginx.
func characters(name string) (n int, ok bool) {
	for rest := name; rest != ""; n++ {
		size := characterSize(rest)
		if size == 0 {
			return 0, false
		}
		rest = rest[size:]
	}
	return n, true
}

// charactersOf returns the first n characters of a name that characters has counted.
func charactersOf(name string, n int) string {
	end := 0
	for range n {
		end += characterSize(name[end:])
	}
	return name[:end]
}

// bytesOf returns the first n bytes.
func bytesOf(name string, n int) string { return name[:n] }

// characterSize returns the length of the first character, 0 if it is invalid. It is
// ngx_utf8_decode, which is less strict than package utf8: it accepts surrogates, and any byte
// from 0x80 on as a continuation.
func characterSize(s string) int {
	c := s[0]
	size, least := 0, rune(0)
	switch {
	case c < 0x80:
		return 1
	case c >= 0xf0:
		size, least, c = 4, 0x10000, c&0x07
	case c >= 0xe0:
		size, least, c = 3, 0x800, c&0x0f
	case c >= 0xc2:
		size, least, c = 2, 0x80, c&0x1f
	}
	if size == 0 || len(s) < size {
		return 0
	}
	value := rune(c)
	for i := 1; i < size; i++ {
		if s[i] < 0x80 {
			return 0
		}
		value = value<<6 | rune(s[i]&0x3f)
	}
	if value < least || value > 0x10ffff {
		return 0
	}
	return size
}
