package response

import "io"

// Discard is the body transform for responses to HEAD, for filters that change the length of the content. Without it, if
// a handler writes its content for HEAD as well, net/http's server would send the length of the unchanged content, which
// the response to GET does not have (RFC 9110 section 8.6).
var Discard io.WriteCloser = discard{}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (discard) Close() error { return nil }
