// Package localerror writes the gateway's own error responses, in the form that the client understands.
package localerror

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
)

// Write responds to r with a status and its text. A gRPC client takes an HTTP status of a proxy for one of a few codes, and
// any content for a broken stream, so r with the Content-Type of gRPC has a gRPC response in its place: 200 with grpc-status
// and grpc-message in the header, and no content ("Trailers-Only" of gRPC over HTTP/2). Nothing may flush it before the
// handler has returned. gRPC-Web accepts that form as well.
//
// If r is nil, it is not of gRPC. The caller must bound how long the client may take to accept the response.
func Write(w http.ResponseWriter, r *http.Request, status int) {
	if !IsGRPC(r) {
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.WriteHeader(SetGRPC(w.Header(), r, status))
}

// SetGRPC makes h the header of the gRPC response that Write sends for a status to r, which IsGRPC, and returns the status that it
// is sent with. It must have no content.
func SetGRPC(h http.Header, r *http.Request, status int) int {
	delete(h, "Content-Length")
	delete(h, "Trailer")
	h["Content-Type"] = []string{grpcType(r)}
	h["Grpc-Status"] = []string{strconv.Itoa(grpcCode(status))}
	if text := http.StatusText(status); text != "" { // which needs no percent-encoding
		h["Grpc-Message"] = []string{text}
	}
	return http.StatusOK
}

// WriteError is Write with the status of e, and its RetryAfter.
func WriteError(w http.ResponseWriter, r *http.Request, e *culvert.Error) {
	SetRetryAfter(w.Header(), e)
	Write(w, r, e.Status())
}

// SetRetryAfter sets Retry-After to e.RetryAfter in whole seconds, rounded up. If that is 0, a 503 says a second: a Picker of the
// program's own, or a hook, need not think of it.
func SetRetryAfter(h http.Header, e *culvert.Error) {
	after := e.RetryAfter
	if after <= 0 && e.Status() == http.StatusServiceUnavailable {
		after = time.Second
	}
	if after > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(int64((after-1)/time.Second+1), 10)}
	}
}

// IsGRPC reports whether r is a call of gRPC or gRPC-Web, by its Content-Type.
func IsGRPC(r *http.Request) bool { return grpcType(r) != "" }

// grpcType returns the media type of the response to a gRPC call r, "" if r is none. It is not the client's as a whole: the
// suffix names a codec, and there is no message.
func grpcType(r *http.Request) string {
	if r == nil {
		return ""
	}
	lines := r.Header["Content-Type"]
	if len(lines) != 1 {
		return ""
	}
	rest, ok := cutPrefixFold(lines[0], "application/grpc")
	if !ok {
		return ""
	}
	media := "application/grpc"
	for _, web := range [...]string{"-web-text", "-web"} {
		if after, ok := cutPrefixFold(rest, web); ok {
			media, rest = media+web, after
			break
		}
	}
	if rest != "" && strings.IndexByte("+; \t", rest[0]) < 0 {
		return ""
	}
	return media
}

// cutPrefixFold is strings.CutPrefix without regard to case.
func cutPrefixFold(s, prefix string) (after string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// The codes of gRPC that a gateway's own failures have.
const (
	unknown           = 2
	deadlineExceeded  = 4
	permissionDenied  = 7
	resourceExhausted = 8
	unimplemented     = 12
	internal          = 13
	unavailable       = 14
	unauthenticated   = 16
)

// grpcCode returns the code of a status, as in gRPC's "HTTP to gRPC Status Code Mapping". That is for clients, which know
// nothing but the status of a proxy's response. The gateway knows what its own statuses mean: a time that has passed, and
// a limit, have the codes that gRPC has for them, in place of UNAVAILABLE and UNKNOWN.
func grpcCode(status int) int {
	switch status {
	case http.StatusUnauthorized:
		return unauthenticated
	case http.StatusForbidden:
		return permissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusUpgradeRequired, http.StatusNotImplemented:
		return unimplemented
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return deadlineExceeded
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return resourceExhausted
	case http.StatusBadRequest, http.StatusInternalServerError:
		return internal
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return unavailable
	}
	return unknown
}
