package response

import "io"

// Discard is the body transform for HEAD of a filter that changes the length of contents. Without it a handler that
// writes its content for HEAD as well would have net/http's server send the length of the unchanged content, which a
// GET would not have (RFC 9110 section 8.6).
var Discard io.WriteCloser = discard{}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (discard) Close() error { return nil }
