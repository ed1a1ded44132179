// Package authors holds programs as users of culvert would write them, each in a folder
// of its own, by the public documentation alone: README.md, docs, go doc, SECURITY.md.
// What one of them had to guess is a fault of the documentation. Their tests run them
// against real peers. The module has dependencies that the library does not have: run it
// with GOWORK=off.
package authors
