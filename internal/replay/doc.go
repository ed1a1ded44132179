// Package replay gives the body of one request to the attempts of its exchange: it is read once, and what was read is
// sent again to the next target, as far as it was kept. It holds the client's Expect, the trailers, and who waits for whom.
//
// A Body is the request's, an Attempt the handle by which one attempt reads it. Together they are one state machine
// under one mutex (Body.mu):
//
//	Body     reading            a goroutine reads the client's body
//	         rest               what becomes of what the client has yet to send (rest.go)
//	Attempt  open paused ended  an open one owns the body: what is read is its own; else it is kept for the next (attempt.go)
//	         expect             the state of the client's Expect: 100-continue (expect.go)
//	         leave, stall       an attempt over a transport that stops waiting (leave.go, stall.go)
package replay
