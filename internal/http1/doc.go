// Package http1 speaks HTTP/1.1 to targets: connections that are kept, heads written and
// read, bodies read. It does no more than an exchange needs, on the goroutine of whoever
// asks; package proxy decides what an exchange is.
//
// What it takes for an answer, and what not, is what net/http's Transport takes: FuzzAnswerPaths and
// FuzzRequestPaths of package proxy hold one against the other, and the differences that are
// wanted have names there.
package http1
