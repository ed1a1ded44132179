package wsupgrade

import (
	"errors"
	"net/http"
)

// Restore returns a filter that restores WebSocket handshakes of which a proxy in front has
// forwarded everything but Upgrade and Connection, as nginx does by default. A request that match
// accepts is taken for a handshake if it is a GET without a body that has a valid Sec-WebSocket-Key
// and version 13 and offers no other upgrade; in HTTP/1.0 too, which such an nginx speaks. It
// belongs into a Chain, in front of the handler that forwards upgrades.
//
// It is a workaround; configure the proxy in front to forward both fields instead. A client can
// send the two Sec-WebSocket fields without requesting an upgrade. The proxy in front then receives
// a 101 that neither it nor its client has requested, and that client controls what the proxy reads
// from its connection afterwards: with a proxy that reuses the connection, perhaps for another
// user's request, that is response smuggling. nginx does not pass on a 101 that its client has not
// requested, and never reuses that connection. Restore only the paths that need it, never every
// request.
//
// Restore returns an error if match is nil.
func Restore(match func(*http.Request) bool) (func(http.Handler) http.Handler, error) {
	if match == nil {
		return nil, errors.New("wsupgrade: Restore: nil match")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if stripped(r) && match(r) {
				r = restored(r)
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}

// stripped reports whether r is a handshake but for its hop-by-hop fields.
func stripped(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Method == http.MethodGet && r.ContentLength == 0 && r.Header["Upgrade"] == nil &&
		checkKey(r.Header["Sec-Websocket-Key"]) == nil && checkVersion(r.Header["Sec-Websocket-Version"]) == nil
}

func restored(r *http.Request) *http.Request {
	whole := r.WithContext(r.Context())
	whole.Proto, whole.ProtoMinor = "HTTP/1.1", 1
	whole.Header = r.Header.Clone()
	whole.Header["Connection"] = []string{"Upgrade"}
	whole.Header["Upgrade"] = []string{"websocket"}
	return whole
}
