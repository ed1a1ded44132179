// Package netloop waits for many sockets on a few goroutines, so that an idle socket costs neither a
// goroutine nor a buffer.
//
// A Set runs loops over epoll(7), on Linux only. There are two ways to use one:
//
//   - A Handler is called on a loop with each event of a descriptor of its own, which the runtime's
//     poller does not know. Tunnels are moved like that.
//   - A Waiter waits for a connection of package net to be readable, once, and then runs a function
//     on a goroutine of its own. A server's idle connections wait like that.
//
// On other systems a Set has no loops, and Waiter.Init returns [errors.ErrUnsupported], so that
// callers wait in their portable way. They need that way on Linux as well: for connections that are
// no plain sockets, and for a system that refuses an epoll instance or a registration.
package netloop
