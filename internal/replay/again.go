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
	begun     atomic.Bool
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

// Len returns the length of the body, 0 if reads fail.
func (a *Again) Len() int64 {
	if a.whole == nil {
		return 0
	}
	return a.whole.Len()
}

// Text returns the body if all of it is in memory, and else "".
func (a *Again) Text() string {
	if a.whole == nil {
		return ""
	}
	return a.whole.Text()
}

// File returns the name of the file that the body is in, "" if there is none.
func (a *Again) File() string {
	if a.whole == nil {
		return ""
	}
	return a.whole.File()
}

// adopt makes b the body that an exchange around it has read as a whole: it need not be held a second time, and can be sent
// to each target. What a handler has begun to read, or changed the length of, is read like a client's.
func (b *Body) adopt() bool {
	a, ok := b.in.Body.(*Again)
	if !ok || a.whole == nil || a.begun.Load() || a.closed.Load() || b.in.ContentLength >= 0 && b.in.ContentLength != a.whole.Len() {
		return false
	}
	a.whole.readers.Add(1)
	b.whole, b.isWhole, b.adopted = a.whole, true, true
	b.reader = a
	b.client.StartEnded()
	b.nameTrailers()
	return true
}

// Read implements io.Reader.
func (a *Again) Read(p []byte) (int, error) {
	if a.whole == nil {
		return 0, errTaken
	}
	a.begun.Store(true)
	return a.Reader.Read(p)
}

// Close implements io.Closer.
func (a *Again) Close() error {
	if a.whole != nil && a.closed.CompareAndSwap(false, true) {
		a.whole.release()
	}
	return nil
}
