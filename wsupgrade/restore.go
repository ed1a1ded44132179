package wsupgrade

import (
	"errors"
	"net/http"
)

// Restore returns a filter that makes WebSocket handshakes whole again of which a
// proxy in front has forwarded everything but Upgrade and Connection, as an nginx does
// that nobody has told otherwise. A request on a path that match accepts is taken for
// a handshake if it is a GET without a body that carries a valid Sec-WebSocket-Key and
// version 13 and offers no other upgrade; in HTTP/1.0 too, which is what such an nginx
// speaks. It belongs into a Chain, in front of what forwards upgrades.
//
// It is a workaround; tell the proxy in front to forward both fields instead. A client
// can send the two Sec-WebSocket fields without asking for an upgrade. The proxy in
// front then gets a 101 that neither it nor its client has asked for, and what it takes
// for the rest of its connection is up to that client: with a proxy that uses the
// connection again, for another user's request perhaps, that is response smuggling.
// nginx keeps a 101 that its client has not asked for to itself, and never uses that
// connection again. Restore on the paths that need it alone, and never for everybody.
//
// An error is returned if match is nil.
func Restore(match func(*http.Request) bool) (func(http.Handler) http.Handler, error) {
	if match == nil {
		return nil, errors.New("wsupgrade: Restore needs to be told where")
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

// stripped says whether r is a handshake but for its hop-by-hop fields.
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
