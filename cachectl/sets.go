package cachectl

import (
	"net/http"
	"path"
	"strings"
)

// AllErrorPages is ErrorPages for errors with explicit freshness too: for upstreams that
// give all their answers the same.
func AllErrorPages() Rules {
	return Rules{{Match: Class(4, 5), Policy: asked}}
}

// asked has browsers ask again, and shared caches keep nothing.
var asked = Policy{Mode: Override, CacheControl: "private, no-cache", Expires: epoch}

// assets are what pages are made of, by their extensions.
var assets = []string{".css", ".js", ".mjs", ".map", ".wasm", ".woff", ".woff2", ".ttf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico"}

// StaticAssets keeps assets with a hash in their names for a year without asking: their
// content never changes. It is for answers without error, 304 among them, and replaces
// what they say. Other assets are asked for again each time, which costs a 304.
func StaticAssets() Rules {
	found := And(Or(Class(2), Status(http.StatusNotModified)), Extension(assets...))
	return Rules{
		{And(found, hashedName), Policy{Mode: Override, CacheControl: "public, max-age=31536000, immutable"}},
		{found, Policy{Mode: Override, CacheControl: "no-cache"}},
	}
}

// hashedName matches names with a part of eight or more hexadecimal digits, or letters and
// digits as bundlers write them, before the extension: app.3f9a1c2b.js, app-BxK29d_a.css.
func hashedName(r *Response) bool {
	name := path.Base(requestPath(r))
	name = strings.TrimSuffix(name, path.Ext(name))
	i := strings.LastIndexAny(name, ".-")
	return i > 0 && looksHashed(name[i+1:])
}

func looksHashed(s string) bool {
	digits, letters := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			letters++
		default:
			return false
		}
	}
	return len(s) >= 8 && digits > 0 && letters+digits == len(s)
}

// HTML has pages asked for again each time, so that they name the assets of today. A 304
// tells no type: it is known by its path, which ends in a slash, in .html or in no extension.
func HTML() Rules {
	page := func(r *Response) bool {
		p := requestPath(r)
		return strings.HasSuffix(p, "/") || path.Ext(p) == "" || path.Ext(p) == ".html"
	}
	return Rules{{
		Or(And(Class(2), ContentType("text/html")), And(Status(http.StatusNotModified), page)),
		Policy{Mode: Override, CacheControl: "no-cache"},
	}}
}

// API keeps what is below a path out of every store, errors too.
func API(prefix string) Rules {
	return Rules{{Path(strings.TrimSuffix(prefix, "/") + "/**"), Policy{Mode: Override, CacheControl: "no-store"}}}
}
