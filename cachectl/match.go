package cachectl

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Response is what a rule may look at and change: the final header of a response, and its request.
type Response struct {
	// Request is the response's request; nil is treated as a GET of "/".
	Request *http.Request
	// Status is the final status code.
	Status int
	// Header is the final header. Rules.Apply changes it.
	Header http.Header
}

// Match reports whether a rule applies to a response. It must be safe for concurrent use, and must
// not keep the Response.
type Match func(*Response) bool

// Any matches every response.
func Any() Match { return func(*Response) bool { return true } }

// Status matches responses with one of the codes.
func Status(codes ...int) Match {
	return func(r *Response) bool { return slices.Contains(codes, r.Status) }
}

// Class matches responses whose status begins with one of the digits: Class(4, 5)
// matches every error.
func Class(digits ...int) Match {
	return func(r *Response) bool { return slices.Contains(digits, r.Status/100) }
}

// Method matches responses to requests with one of the methods.
func Method(methods ...string) Match {
	return func(r *Response) bool {
		if r.Request == nil {
			return slices.Contains(methods, http.MethodGet)
		}
		return slices.Contains(methods, r.Request.Method)
	}
}

// Path matches the decoded path of the request's URL against a pattern of
// path.Match, in which * stops at a slash. A pattern that ends in "/**" matches
// everything below. A malformed pattern matches nothing.
//
// Prefer it to ContentType for assets: a 304 carries no Content-Type.
func Path(pattern string) Match {
	if below, ok := strings.CutSuffix(pattern, "/**"); ok {
		return func(r *Response) bool { return strings.HasPrefix(requestPath(r), below+"/") }
	}
	return func(r *Response) bool {
		ok, err := path.Match(pattern, requestPath(r))
		return ok && err == nil
	}
}

// Extension matches responses to requests whose path ends in one of the extensions,
// regardless of case. They are given with their dot: Extension(".css", ".js").
func Extension(extensions ...string) Match {
	return func(r *Response) bool {
		got := path.Ext(requestPath(r))
		return got != "" && slices.ContainsFunc(extensions, func(want string) bool { return strings.EqualFold(got, want) })
	}
}

// ContentType matches responses of one of the media types, regardless of parameters
// and case; "text/*" matches all of text.
func ContentType(types ...string) Match {
	return func(r *Response) bool {
		got, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		got = strings.ToLower(strings.TrimSpace(got))
		return got != "" && slices.ContainsFunc(types, func(want string) bool { return matchesType(got, strings.ToLower(want)) })
	}
}

func matchesType(got, want string) bool {
	if class, ok := strings.CutSuffix(want, "/*"); ok {
		return strings.HasPrefix(got, class+"/")
	}
	return got == want
}

// Has matches responses that have the header field.
func Has(field string) Match {
	key := http.CanonicalHeaderKey(field)
	return func(r *Response) bool { return len(r.Header[key]) > 0 }
}

// And matches if all matches do; with none, always. And, Or and Not panic if a match is nil.
func And(matches ...Match) Match {
	checkMatches("And", matches...)
	return func(r *Response) bool {
		for _, m := range matches {
			if !m(r) {
				return false
			}
		}
		return true
	}
}

// Or matches if one of the matches does; with none, never.
func Or(matches ...Match) Match {
	checkMatches("Or", matches...)
	return func(r *Response) bool {
		for _, m := range matches {
			if m(r) {
				return true
			}
		}
		return false
	}
}

// Not matches if m does not.
func Not(m Match) Match {
	checkMatches("Not", m)
	return func(r *Response) bool { return !m(r) }
}

// checkMatches panics where the mistake is made, not at the first response.
func checkMatches(function string, matches ...Match) {
	for i, m := range matches {
		if m == nil {
			panic(fmt.Sprintf("cachectl: %s: match %d is nil", function, i))
		}
	}
}

func requestPath(r *Response) string {
	if r.Request == nil || r.Request.URL == nil {
		return "/"
	}
	return r.Request.URL.Path
}
