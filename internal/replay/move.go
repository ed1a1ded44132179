package replay

import (
	"io"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/http1"
)

var _ http1.Source = (*Attempt)(nil)

// Move implements http1.Source. A body is moved only from where on nothing of it is kept for another attempt.
func (a *Attempt) Move(to clientbody.Taker, most int64) (n int64, err error) {
	defer a.body.Catch(&err)
	at, err := a.startRead()
	defer func() { a.finishRead(int(n), nil) }()
	if err != nil {
		return 0, nil // Read fails as well
	}
	b := a.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading || !b.movableFor(a, at) { // Read may wait
		return 0, nil
	}
	a.waits = true
	n, err = b.moveUnlocked(a, to, min(most, b.in.ContentLength-at))
	a.waits, a.lastRead = false, b.lastRead
	if b.read += n; b.read == b.in.ContentLength {
		b.end = io.EOF
	}
	return n, err
}

// movableFor reports whether the client's next bytes may be moved to a, which has got those before at. The caller holds b.mu.
func (b *Body) movableFor(a *Attempt, at int64) bool {
	return b.reader == io.Reader(&b.client) && b.truncated && at == b.read && b.read < b.in.ContentLength &&
		len(b.readAhead) == 0 && b.end == nil && a.leave == nil && a.owns()
}

// moveUnlocked moves what the client sends next. The caller holds b.mu, which is free meanwhile.
func (b *Body) moveUnlocked(a *Attempt, to clientbody.Taker, most int64) (int64, error) {
	b.startReading()
	defer b.stopReading()
	n, _, err := b.client.Move(to, most, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		a.waits, b.lastRead = false, time.Now()
		return a.owns()
	})
	return n, err
}
