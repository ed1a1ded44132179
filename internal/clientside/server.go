package clientside

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// Server is the http.ResponseWriter of a server that does for a handler what net/http's has no methods for. If it has a
// method ReadFrom, that sends the bytes to the client as they are.
type Server interface {
	http.ResponseWriter

	// WriteContinue sends a 100 (Continue), unless the final response has begun. It neither sends nor changes Header. It is
	// called on the goroutine that reads the request's body, while no other one writes.
	WriteContinue()
	// CloseAfterResponse has the connection closed after the response, though the response's header may have been sent
	// before. It is called when the handler reads no more of a request whose body has not ended (RFC 9112 section 9.3).
	CloseAfterResponse()
}

// Bounded is a Server that can report the deadline of writes that its connection has, perhaps of an earlier response. It need
// not be set again where it will do: that costs as much as a tenth of a small response.
type Bounded interface{ WriteDeadline() time.Time }

// Formatter is a Server that writes the header of its final response by a given format.
type Formatter interface {
	// FormatHeader has the header written by f, if it was not yet, and f.Names is not nil. It may be called again.
	FormatHeader(f fieldnames.Format)
	// HeaderFormat returns what FormatHeader was given, also when the connection was taken over.
	HeaderFormat() fieldnames.Format
}

// HeaderFormat returns the format that the header of the Server that w is or wraps was given, without Names if there is none.
func HeaderFormat(w http.ResponseWriter) (f fieldnames.Format) {
	if s, ok := innermost(w).(Formatter); ok {
		f = s.HeaderFormat()
	}
	return f
}

// FormatHeader has the Server that w is or wraps write its header by f, if it can.
func FormatHeader(w http.ResponseWriter, f fieldnames.Format) {
	if s, ok := innermost(w).(Formatter); ok {
		s.FormatHeader(f)
	}
}

// Idler is a Server whose connection waits for its next request as long as the handler says.
type Idler interface {
	// SetIdleTimeout bounds the wait behind this response, in place of what the server has for all; 0 means that.
	SetIdleTimeout(d time.Duration)
}

// SetIdleTimeout bounds how long the connection of the Server that w is or wraps waits for its next request, if it can.
func SetIdleTimeout(w http.ResponseWriter, d time.Duration) {
	if s, ok := innermost(w).(Idler); ok {
		s.SetIdleTimeout(d)
	}
}

// Receiver is a Server that knows how a request was received.
type Receiver interface {
	// RequestHeader returns how many bytes the header section had, and whether it was received with what is in front of it on
	// the connection: before the response to the request before.
	RequestHeader() (size int, pipelined bool)
}

// RequestHeader returns what the Server that w is or wraps knows of its request; 0 and false if it knows nothing.
func RequestHeader(w http.ResponseWriter) (size int, pipelined bool) {
	if r, ok := innermost(w).(Receiver); ok {
		size, pipelined = r.RequestHeader()
	}
	return size, pipelined
}

// ServerOf returns the Server that w is or wraps, and else what does the same to the innermost writer that w wraps.
func ServerOf(w http.ResponseWriter) Server {
	w = innermost(w)
	if s, ok := w.(Server); ok {
		return s
	}
	return netHTTP{w}
}

// innermost returns the Server that w is or wraps, and else the writer at the end of the chain of Unwrap methods.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		if _, ok := w.(Server); ok {
			return w
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// OfServer reports whether w is a server's own writer, and no wrapper of one.
func OfServer(w http.ResponseWriter) bool {
	if ofNetHTTP(w) {
		return true
	}
	_, ok := w.(Server)
	return ok
}
