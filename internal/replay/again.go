package replay

import (
	"errors"
	"io"
)

var errSent = errors.New("the body was sent to the target whose response is replaced, and Options.RequestBuffer does not hold it")

// Again returns the body for a handler that responds in the place of a target. If Options.Buffer is nil, its reads fail: an
// attempt may still read the client, and what it leaves would look like a whole body.
func (b *Body) Again() io.ReadCloser {
	if b.whole != nil {
		return io.NopCloser(b.whole.Reader())
	}
	return io.NopCloser(failing{})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSent }
