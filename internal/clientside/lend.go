package clientside

import "net/http"

// A server of our own uses the memory of a request again, its header maps and writer included, where nothing can hold it any
// more. Two things have to be known for that:
//
//   - that the outermost handler, and all that it calls, is of this module and keeps nothing of what ServeHTTP was given.
//     RegisterReturner and Returns are for that. A function of the program's own which is given a request may keep it,
//     against all documentation: another client's request would stand in its place.
//   - that this request is none of the few that something holds for longer: an upload that has not ended, a dial, a
//     transport. The handler that started it calls Hold.
//
// A context that was waited for may be held by who waits; the server knows that by itself.

var returners []func(v any) bool

// RegisterReturner has Returns ask returns about values of type T. It is called while the program is initialised.
func RegisterReturner[T any](returns func(v T) bool) {
	returners = append(returners, func(v any) bool {
		t, ok := v.(T)
		return ok && returns(t)
	})
}

// Returns reports whether v, a handler or what a handler is made of, uses nothing of a request after the handler has
// returned, unless it has called Hold. It is false for types that are not registered.
func Returns(v any) bool {
	for _, returns := range returners {
		if returns(v) {
			return true
		}
	}
	return false
}

// Lender is a Server that uses the memory of requests again.
type Lender interface {
	// Hold has the memory of this request, the writer included, not used again.
	Hold()
	// Memory returns memory for the values and names of the response's header; nil for none. It is good as long as the writer.
	Memory() []string
}

// Hold is called by a handler that Returns reports true for, before it returns, if something may still use what ServeHTTP
// was given.
func Hold(w http.ResponseWriter) {
	if l, ok := innermost(w).(Lender); ok {
		l.Hold()
	}
}
