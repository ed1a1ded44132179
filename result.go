package culvert

import "time"

// Result is the record of an exchange: its upstream, each attempt, the bytes of a tunnel, and
// the failure, and the user. The proxy writes it on the goroutine of the handler, and it is complete when the
// handler has returned. Hooks that run on that goroutine, for the header of a response, see the
// attempts so far and the one whose response it is.
type Result struct {
	// Upstream is the name of the upstream. It is empty if the request did not reach a proxy.
	Upstream string
	// User is the name of the user whom a filter inside of the record has authenticated, as filters.BasicAuth does; a
	// filter of the program's own may set it. It is empty if there is none.
	User string
	// Attempts are the attempts in order. An attempt is appended when the header of its
	// response was received, or when it failed. Until it ends, its Total, Sent, Received, WireSent,
	// WireReceived and Err are zero.
	Attempts []Attempt
	// BytesIn and BytesOut are the bytes that a tunnel carried from and to the client. They are
	// 0 for exchanges that were not upgraded.
	BytesIn, BytesOut int64
	// Err is the failure that the client saw, nil if there was none.
	Err error
}

// Attempt is one try of an exchange on one target.
type Attempt struct {
	// Target is the address of the target.
	Target string
	// Start is when the attempt began, after the wait in the group's queue. It ended Total later.
	Start time.Time
	// Status is the status of the target's response, 0 if there was none.
	Status int
	// TimeToConnect is the time from Start to the connection, TLS included; next to nothing for
	// a connection that was kept, 0 if there was none.
	TimeToConnect time.Duration
	// TimeToHeader is the time from Start to the header of the response, 0 if there was none.
	TimeToHeader time.Duration
	// Total is the time from Start to the end of the response or the failure.
	Total time.Duration
	// Sent is the number of bytes of the request's content that the target was handed, Received
	// that of the response's content that the client was handed. They are 0 for a tunnel; see
	// Result.
	Sent, Received int64
	// WireSent and WireReceived are the bytes that were sent to the target and received from it over HTTP/1.1, header sections
	// and chunks included, TLS left out. They are 0 if they are not known: over HTTP/2, for a tunnel, or a transport of the program's own.
	WireSent, WireReceived int64
	// Err is why the attempt failed, nil if it did not.
	Err error
}

// ResponseStats describes a response that has ended.
type ResponseStats struct {
	// Status is the status of the final header: 101 if the connection was hijacked, 200 if that was for CONNECT,
	// 200 if the handler returned and wrote nothing, 0 if it panicked before the header.
	Status int
	// Bytes is the number of bytes of content that were sent, after every inner transform,
	// without headers and chunk framing. It is 0 for HEAD and for a hijacked connection.
	Bytes int64
	// Start is when the handler was called, Duration the time until it returned or panicked.
	Start    time.Time
	Duration time.Duration
	// Hijacked reports whether the handler hijacked the connection.
	Hijacked bool
	// Aborted reports whether the handler panicked, with http.ErrAbortHandler or another
	// value.
	Aborted bool
}
