// Package server is an HTTP server with the shape of net/http's: Server has the fields and methods of http.Server, and a
// handler is an http.Handler. It serves HTTP/1.1 and HTTP/1.0 by itself, at a fraction of net/http's cost for a small
// request, and HTTP/2 by golang.org/x/net/http2. It is for gateways. To use it, write server.Server in place of http.Server.
//
// What a handler may rely on with net/http it may rely on here: implicit headers, sniffed types, trailers, interim
// responses, http.ResponseController, http.Hijacker, http.Flusher and io.ReaderFrom.
//
// # What differs from net/http
//
// A request that could be understood in two ways is refused, and its connection closed. In front of other servers, the next
// one may understand it the other way:
//
//   - Content-Length beside Transfer-Encoding: 400 (RFC 9112 section 6.3). net/http ignores the length.
//   - Transfer-Encoding in HTTP/1.0: 400 (RFC 9112 section 6.1). net/http ignores it.
//   - Folded field lines: 400 (RFC 9112 section 5.2). net/http joins them.
//   - In chunked bodies blanks behind a chunk's size, and control characters in chunk extensions: the read fails (RFC 9112
//     section 7.1). So do framing fields among the trailers (RFC 9110 section 6.5.1). net/http passes these on.
//   - A header is judged when all of it was received. If the client ends the connection before, it has sent no request (RFC
//     9112 section 8), and there is no response to it. net/http responds with 400 to a malformed line before the others. So
//     behind a POST, where up to two empty lines are ignored (RFC 9112 section 2.2), a third one is refused with the header
//     that it begins.
//   - The preface of HTTP/2, unless Protocols has UnencryptedHTTP2: 505. net/http passes it to the handler.
//
// Limits are exact, and what exceeds them has the status for it:
//
//   - MaxHeaderBytes bounds the header section by itself. net/http adds 4 KiB. A request line that exceeds it is refused with
//     414 (RFC 9110 section 15.5.15), net/http responds with 431.
//   - Trailers may be as long as a header; in net/http 4 KiB.
//
// The body of a request and the response do not wait for each other:
//
//   - A handler may always read the request's body behind a response that it has begun: full duplex is the normal state, and
//     EnableFullDuplex does nothing.
//   - What a handler has left of a body is read when its response was sent, up to 256 KiB and for a second, so that the
//     connection can be kept. net/http reads it before it sends the response's header.
//   - If more is left, the connection is closed for writing, and read for up to 2 seconds, so that the client can read the
//     response (RFC 9112 section 9.6). net/http waits half a second and reads nothing, so a client that still sends loses
//     the response. The same follows a refused request, and a connection's last response if the client has pipelined more.
//
// Nothing outlives its handler:
//
//   - When the handler has returned, calls of its ResponseWriter, also by way of http.ResponseController, fail and have no
//     effect on another request.
//   - A response that ends with its connection, and whose handler panics, is ended by a reset: net/http makes it look whole.
//   - Up to 8 KiB of a response are held for the length to be known, in place of 2 KiB. The order of header fields is not
//     defined. In field values NUL is sent as a blank, as CR and LF are (RFC 9110 section 5.5).
//   - Trailers that are set with http.TrailerPrefix behind a short body are sent. net/http sends them only if the body was
//     flushed or exceeds 2 KiB.
//   - Interim responses are not sent to clients of HTTP/1.0 (RFC 9110 section 15.2).
//   - The connection is closed behind a 101 whose connection no handler has taken (RFC 9110 section 15.2.2).
//   - http.CloseNotifier, which is deprecated, is not implemented. A request's context ends when the client leaves.
//   - http.MaxBytesReader has no way to close the connection. Large rests are not read anyway.
//
// Of the server:
//
//   - Shutdown has a connection that was accepted serve its first request. net/http drops that of some.
//   - MaxConns, MaxConnsPerAddr and the accept queue bound the connections; idle ones give way to new ones. net/http has no
//     bound.
//   - OnRefused receives the requests that were refused, for an access log, and may respond to them.
//   - TLSNextProto must be empty: Serve refuses other values.
//   - A malformed request of HTTP/2 gets a 400, if no header was sent on its stream (RFC 9113 section 8.1.1). The stream is
//     then reset if the client has not ended its side. net/http resets the stream only. So it is here on connections whose
//     client has ever set a SETTINGS_HEADER_TABLE_SIZE of less than 4096, on streams beyond 1024 open ones, and behind a GOAWAY.
//     With a malformed header section the request reaches neither the handler nor OnRefused. If it is found malformed later,
//     by more content than it declares or by its trailers, the handler has been called, and its reads fail.
//   - As with net/http, a malformed header section with CONTINUATION frames may end the connection, and so does content that
//     follows a malformed one: golang.org/x/net takes the stream for idle, and sends a GOAWAY.
//   - Header sections of HTTP/2 are sent in frames as large as the client accepts, in net/http 16 KiB; a setting that a client
//     sends twice in a frame has its last value, SETTINGS_HEADER_TABLE_SIZE its least; net/http ends the connection.
//   - Request.TLS of HTTP/2 is the connection's. In net/http it is nil if the client has sent another ":scheme" than https.
//   - http.ServerContextKey has an http.Server that stands for the Server: it has its addresses, times and limits.
//   - A panic is logged, and ends the connection, also that of a hook.
//
// An idle connection has a goroutine, but no buffer. On Linux one that is not of TLS has no goroutine either after at most
// half a second.
//
//	server.go    the fields; listen.go, admission.go, shutdown.go
//	http2.go     HTTP/2; http2conn.go, http2streams.go, http2output.go: what golang.org/x/net reads and writes
//	conn.go      a connection's goroutine: a request after the other; idle.go, refuse.go
//	exchange.go  a request with what its handler is given; body.go, context.go, watch.go
//	writer.go    the response; responseheader.go, output.go, readfrom.go, hijack.go
package server
