package replay

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/culvert-go/culvert/internal/spool"
)

var errTaken = errors.New("the body was the target's, and Options.RequestBuffer does not hold it")

// Again is the body of a request for a handler that responds in the place of a target. If Options.Buffer is nil, or did not
// hold it all, its reads fail: an attempt may still read the client, and what it leaves would look like a whole body.
type Again struct {
	io.Reader          // of whole, from its beginning; nil: reads fail
	whole     *sharing // nil: reads fail
	closed    atomic.Bool
}

// sharing counts those that read a Spool, which is closed behind the last of them.
type sharing struct {
	*spool.Spool
	readers atomic.Int32
}

// share returns s with one reader.
func share(s *spool.Spool) *sharing {
	shared := &sharing{Spool: s}
	shared.readers.Add(1)
	return shared
}

func (s *sharing) release() {
	if s.readers.Add(-1) == 0 {
		_ = s.Close()
	}
}

// Again returns the body once more. It is called before Finish, behind which it may be read until it is closed.
func (b *Body) Again() *Again {
	if b.whole == nil || !b.isWhole {
		return new(Again)
	}
	return b.whole.again()
}

func (s *sharing) again() *Again {
	s.readers.Add(1)
	return &Again{Reader: s.Reader(), whole: s}
}

// Again returns the body from its beginning, for the time behind Close.
func (a *Again) Again() *Again {
	if a.whole == nil {
		return new(Again)
	}
	return a.whole.again()
}

// Read implements io.Reader.
func (a *Again) Read(p []byte) (int, error) {
	if a.whole == nil {
		return 0, errTaken
	}
	return a.Reader.Read(p)
}

// Close implements io.Closer.
func (a *Again) Close() error {
	if a.whole != nil && a.closed.CompareAndSwap(false, true) {
		a.whole.release()
	}
	return nil
}
