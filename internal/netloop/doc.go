// Package netloop handles the events of many sockets on a few goroutines, so that an idle socket costs
// neither a goroutine nor a buffer.
//
// A Set runs loops over epoll(7). A Handler is called on a loop with each event of a descriptor of its
// own, which the runtime's poller does not know.
//
// Other systems have no loops. Their callers need a portable way to wait, which they need on Linux as
// well: for connections that are no plain sockets, and for a system that refuses an epoll instance or
// a registration.
package netloop
