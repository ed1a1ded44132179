// Package scan finds where the values of JSON and the fields of protobuf begin and end, and decodes
// nothing else. In JSON a block of 64 bytes is classified at once: block.go determines what the
// bytes of a block are (block_amd64.s with AVX2), nesting.go where a value ends, scanner.go does so
// for a value that is received in pieces, and window.go for values one after the other. json.go,
// cursor.go and keys.go are built on these, protobuf.go is on its own.
//
// Each function takes the bytes and an index, and returns indexes: nothing is copied or allocated.
package scan
