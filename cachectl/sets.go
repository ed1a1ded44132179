package cachectl

import (
	"net/http"
	"path"
	"strings"
)

// AllErrorPages returns ErrorPages for errors with explicit freshness too: for upstreams that
// send all their responses with the same one.
func AllErrorPages() Rules {
	return Rules{{Match: Class(4, 5), Policy: revalidate}}
}

// revalidate makes browsers revalidate each time, and forbids shared caches to store.
var revalidate = Policy{Mode: Override, CacheControl: "private, no-cache", Expires: epoch}

// assets are the extensions of what pages are made of.
var assets = []string{".css", ".js", ".mjs", ".map", ".wasm", ".woff", ".woff2", ".ttf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico"}

// StaticAssets returns rules by which caches reuse assets with a hash in their names for a year
// without revalidation: their content never changes. Other assets are revalidated each time, which
// costs a 304. The rules apply to a 2xx and a 304, and override their caching fields.
//
// An asset has the extension of a style sheet, a script, a source map, WebAssembly, a font, an image or
// an icon: .css, .js, .mjs, .map, .wasm, .woff, .woff2, .ttf, .png, .jpg, .jpeg, .gif, .svg, .webp, .avif or
// .ico. Its name has a hash if it ends, before the extension and behind a dot or a hyphen, in at least
// eight letters, digits and underscores, one of them a digit: app.3f9a1c2b.js, but also
// photo-20261128.jpg. The rules do not look at Set-Cookie: put a rule for responses that have one
// before them.
func StaticAssets() Rules {
	found := And(Or(Class(2), Status(http.StatusNotModified)), Extension(assets...))
	return Rules{
		{And(found, hashedName), Policy{Mode: Override, CacheControl: "public, max-age=31536000, immutable"}},
		{found, Policy{Mode: Override, CacheControl: "no-cache"}},
	}
}

// hashedName matches paths whose name ends, before the extension, in a part of eight or more letters,
// digits and underscores, at least one a digit, as bundlers write hashes: app.3f9a1c2b.js,
// app-BxK29d_a.css.
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

// HTML returns rules by which pages are revalidated each time, so that they refer to the current
// assets. A 304 has no Content-Type: it counts as a page if its path ends in a slash, in .html or in
// no extension.
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

// API returns rules that forbid caches to store any response, errors included, below the path prefix.
func API(prefix string) Rules {
	return Rules{{Path(strings.TrimSuffix(prefix, "/") + "/**"), Policy{Mode: Override, CacheControl: "no-store"}}}
}
