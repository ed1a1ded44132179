package proxy

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
)

// unsendable is the failure of a request that can't be written. Nothing of it was sent, and the
// target has no part in it: the fault is the client's, or that of a filter or of Rewrite.
func unsendable(in *http.Request, err error) *culvert.Error {
	if e := checkClient(in); e != nil {
		return e
	}
	return &culvert.Error{Kind: culvert.Internal, Err: err}
}

// checkClient refuses what net/http's servers let through though it has no place in a request.
// They have checked the fields.
func checkClient(in *http.Request) *culvert.Error {
	err := http1.CheckLine(in.Method, in.Host, clientTarget(in.URL))
	if err == nil {
		return nil
	}
	return &culvert.Error{Kind: culvert.BadRequest, Err: err}
}

// clientTarget returns the request target of the client, in origin or asterisk form.
func clientTarget(u *url.URL) string {
	target := rawPath(u)
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	return target
}

var errTargetForm = errors.New("a path with two leading slashes that net/http's transport can't send as it is")

// forTransport prepares out for an http.RoundTripper, and refuses what one would refuse itself.
// out.URL is replaced, not changed, where it must differ.
func forTransport(in, out *http.Request) *culvert.Error {
	if err := http1.Check(out); err != nil {
		return unsendable(in, err)
	}
	dropConnectionFields(out)
	hideEmptyKeys(out.Header)
	if !strings.HasPrefix(out.URL.Opaque, "//") {
		return nil
	}
	// net/http would take it for an authority, and send the absolute form: another target
	// than the one that filters have seen. Its own encoding of the path must do.
	u := *out.URL
	u.Opaque, u.RawPath = "", u.Opaque
	var err error
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil || u.EscapedPath() != u.RawPath {
		return &culvert.Error{Kind: culvert.BadRequest, Err: errTargetForm}
	}
	out.URL = &u
	return nil
}

// dropConnectionFields takes out what Rewrite has set for the target's connection: it is
// the transport's, and has no place in HTTP/2 (RFC 9113 section 8.2.2), where net/http refuses it.
func dropConnectionFields(out *http.Request) {
	if lines := out.Header["Connection"]; lines != nil {
		out.Close = out.Close || header.HasToken(lines, "close")
	}
	for _, name := range [...]string{"Connection", "Upgrade", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection"} {
		if out.Header[name] != nil { // or another attempt may still read the map
			delete(out.Header, name)
		}
	}
}
