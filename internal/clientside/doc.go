// Package clientside is the client's side of an exchange, for the time of one handler.
//
// A [Handle] is all through which a goroutine other than the handler's reaches the client: timers, the reader of the
// request's body, a queue of interim responses, the two directions of a tunnel over HTTP/2. It is bound to one run of one
// handler. End, which the handler defers, takes the http.ResponseWriter from it and waits for the calls that use it.
// From then on no deadline, flush, write or header of that writer can be touched: there is nothing left to do it with.
// net/http's server would panic, or change another request's response.
//
// There are two ways from a Handle to the client:
//
//   - What wrappers of the writer may change goes through them, as with http.ResponseController: deadlines, full duplex,
//     content, flushes, a target's interim responses.
//   - What is the server's alone goes to the [Server], which is found at the end of the chain of Unwrap methods: a
//     100 (Continue), and the end of the connection after the response.
//
// net/http's server has no methods for the latter and has to be brought to it by side effects. That is the first
// implementation of Server (nethttp.go). A server of our own implements it with its http.ResponseWriter, beside the
// methods that http.ResponseController calls. It needs no more, since the rest is said by those:
//
//   - A read deadline in the past fails the read of the request's body that is under way, and later ones. What is done
//     with the rest of that body is the server's decision.
//   - One that is set when the handler stops reading bounds how long the server waits for that rest.
//   - EnableFullDuplex says that the handler may respond before it has read the request, and that the server must not
//     read the request's body itself.
//
// A server of our own may use the memory of a request again: [Returns] reports which handlers keep nothing of it, and [Hold]
// excepts a request that something holds nevertheless.
//
// The request's body is not read through this package: filters wrap http.Request.Body. Package clientbody decides who
// reads it and when that ends. Package deadline decides when deadlines are moved.
package clientside
