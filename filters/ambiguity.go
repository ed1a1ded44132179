package filters

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
)

// Ambiguity is a set of ways in which two programs may read one request differently: a
// filter may allow one reading while the target serves another.
type Ambiguity uint

const (
	// EncodedSlash is "%2F" in the path: some programs read it as a slash, others as data.
	EncodedSlash Ambiguity = 1 << iota
	// Backslash is "\" or "%5C" in the path, which some programs read as a slash.
	Backslash
	// DotSegments are "." and ".." in the path, escaped or not, with path
	// parameters (";x") or not.
	DotSegments
	// EmptySegments is "//" in the path.
	EmptySegments
	// ControlBytes are bytes below 0x20 and 0x7F (DEL), escaped or not, in the path.
	ControlBytes
	// PathParameters is ";" in the path.
	PathParameters
	// BadEscapes are "%" without two hexadecimal digits in the query.
	BadEscapes
	// Semicolons are ";" in the query, which some programs read as a separator of parameters.
	Semicolons
	// RepeatedParameters are parameters that occur more than once in the query.
	RepeatedParameters
	// UnderscoreNames are header fields with "_" in their name. CGI, FastCGI and
	// WSGI pass X_User and X-User on as one variable, HTTP_X_USER, so that a client
	// could forge a field that a filter sets or checks. DropUnderscoreNames removes
	// such fields instead of refusing the request.
	UnderscoreNames

	// AnyAmbiguity is the union of all.
	AnyAmbiguity = EncodedSlash | Backslash | DotSegments | EmptySegments | ControlBytes | PathParameters | BadEscapes | Semicolons | RepeatedParameters | UnderscoreNames
)

// RefuseAmbiguous returns a filter that responds with 400 to requests that are
// ambiguous in one of the ways in what. It rewrites nothing: other requests reach the
// next handler unchanged. It panics if what has a bit that is not part of AnyAmbiguity.
func RefuseAmbiguous(what Ambiguity) culvert.Filter {
	if unknown := what &^ AnyAmbiguity; unknown != 0 {
		panic(fmt.Sprintf("filters: RefuseAmbiguous: unknown Ambiguity %#x", uint(unknown)))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path := r.URL.EscapedPath()
			if r.URL.RawPath != "" {
				path = r.URL.RawPath
			}
			if pathAmbiguity(path)&what != 0 || queryAmbiguity(r.URL.RawQuery, what) ||
				what&UnderscoreNames != 0 && header.HasUnderscored(r.Header) {
				refuse(w, r, http.StatusBadRequest)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// DropUnderscoreNames returns a filter that removes the header fields with "_" in
// their name (UnderscoreNames) from each request, and calls the next handler with the
// rest, as nginx does by default (underscores_in_headers off).
func DropUnderscoreNames() culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			header.RemoveUnderscored(r.Header)
			next.ServeHTTP(w, r)
		})
	}
}

// pathAmbiguity returns the ambiguities of an escaped path.
func pathAmbiguity(path string) (found Ambiguity) {
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' && i+2 < len(path) {
			if d, ok := unhex(path[i+1], path[i+2]); ok {
				c, escaped = d, true
				i += 2
			}
		}
		switch {
		case c == '/' && escaped:
			found |= EncodedSlash
		case c == '/' && i > 0 && path[i-1] == '/':
			found |= EmptySegments
		case c == '\\':
			found |= Backslash
		case c < ' ' || c == 0x7f:
			found |= ControlBytes
		case c == ';':
			found |= PathParameters
		}
	}
	return found | dotSegments(path)
}

func dotSegments(path string) Ambiguity {
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path
	}
	for segment := range strings.FieldsFuncSeq(decoded, func(c rune) bool { return c == '/' || c == '\\' }) {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "." || segment == ".." {
			return DotSegments
		}
	}
	return 0
}

func queryAmbiguity(query string, what Ambiguity) bool {
	if what&Semicolons != 0 && strings.Contains(query, ";") {
		return true
	}
	if what&BadEscapes != 0 && badEscape(query) {
		return true
	}
	return what&RepeatedParameters != 0 && repeats(query)
}

func badEscape(s string) bool {
	for i := range len(s) {
		if s[i] != '%' {
			continue
		}
		if i+2 >= len(s) {
			return true
		}
		if _, ok := unhex(s[i+1], s[i+2]); !ok {
			return true
		}
	}
	return false
}

func repeats(query string) bool {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err == nil {
			name = decoded
		}
		if pair != "" && seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

func unhex(a, b byte) (byte, bool) {
	high, ok1 := hexDigit(a)
	low, ok2 := hexDigit(b)
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
