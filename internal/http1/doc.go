// Package http1 has both sides of HTTP/1.1. For a server it reads requests (Incoming) and their bodies (Content), strictly.
// For a client a Pool keeps connections to targets, and runs a Call, which is one exchange, over
// one of them. It does no more than an exchange needs, on its caller's goroutine. Which target gets a request, whether it
// is sent to another one, and what becomes of the response is its caller's matter: package proxy's, or that of the active
// checks of package upstream.
//
// What it accepts as a response, and what not, is what net/http's Transport accepts: FuzzResponsePaths and
// FuzzRequestPaths of package proxy compare both, and name the differences that are wanted.
//
//	call.go     a Call, its hooks and its errors
//	do.go       Do: a connection, the request, whether it is sent over a second connection, the connection's end
//	receive.go  the header of the response, behind interim ones, within its time
//	upload.go   a body that is not sent in one piece with its header, on a goroutine of its own; chunks.go
//	body.go     the body of a response, a Content; move.go has the kernel move it to another socket, moveupload.go a request's
//	request.go, header.go, framing.go: header sections as they are written and read, and where bodies end
//	content.go  a body up to its end, of either side; chunkreader.go
//	incoming.go the header section of a request, for a server
//	pool.go, conn.go, peek*.go: connections
package http1
