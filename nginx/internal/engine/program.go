package engine

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/response"
)

// programRequest returns x's request for a function of the program's: its path and query are those that the location was found
// by, with what has been rewritten. The program may keep the request.
func (x *exchange) programRequest() *http.Request {
	if w := x.root().w; w != nil { // else it is a handshake's
		clientside.Hold(w)
	}
	r := x.HTTP.WithContext(x.HTTP.Context())
	r.URL = shownURL(x.HTTP.URL, x.URI, x.Args)
	return r
}

// shownURL returns a URL of a decoded path. It has the escapes of sent if these stand for the same path.
func shownURL(sent *url.URL, path, query string) *url.URL {
	u := new(url.URL)
	if sent != nil {
		*u = *sent
	}
	raw := u.EscapedPath()
	u.Path, u.RawPath, u.RawQuery, u.Opaque = path, "", query, ""
	if u.EscapedPath() != raw {
		u.RawPath = raw
		if u.EscapedPath() != raw { // it is that of another path
			u.RawPath = ""
		}
	}
	return u
}

// callProgram serves r by a handler of the program's, which what names. The status is that of an error page if the handler has
// panicked before the header of its response, else 0. body is that of r.
func (x *exchange) callProgram(what string, h http.Handler, w http.ResponseWriter, r *http.Request, body *programBody) (status int) {
	sent, around, hijacked := false, false, false
	defer func() { body.finish(hijacked) }()
	defer func() {
		v := recover()
		switch {
		case v == nil:
			return
		case v == http.ErrAbortHandler, around: // a filter around, or the client's writer, has panicked
			panic(v)
		}
		x.logPanic(what, v)
		if sent {
			body.HastenFinish()
			clientbody.LeavePanicked(w, r, &hijacked)
			panic(http.ErrAbortHandler)
		}
		clear(w.Header()) // it was that of the handler's response
		status = http.StatusInternalServerError
	}()
	response.Serve(h, w, r, &response.Hooks{
		Status: func(_ *http.Request, status int, _ http.Header) int { return status }, // also of a handler that writes nothing
		Header: func(_ *http.Request, status int, _ http.Header) {
			sent, hijacked = true, status == http.StatusSwitchingProtocols
		},
		Around: func(*http.Request) { around = true },
	})
	return 0
}

// logPanic logs that a function of the program's has panicked, with the stack.
func (x *exchange) logPanic(what string, v any) {
	x.logAt(levelAlert, fmt.Sprintf("%s has panicked: %v\n%s", what, v, debug.Stack()), "")
}
