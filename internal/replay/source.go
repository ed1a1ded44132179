package replay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// readFor reads on from at for a: out of what was kept, else from the client. It fails with errNotOwned where a does not
// own the body by then. The caller holds b.mu, which is free while the client is read.
func (b *Body) readFor(a *Attempt, p []byte, at int64) (n int, err error) {
	if at < int64(len(b.kept)) {
		return copy(p, b.kept[at:]), nil // though an attempt that has ended may still wait for the client
	}
	a.waits = true
	defer func() { a.waits, a.lastRead = errors.Is(err, os.ErrDeadlineExceeded), b.lastRead }()
	b.awaitReader()
	switch {
	case at < int64(len(b.kept)):
		return copy(p, b.kept[at:]), nil
	case at != b.read:
		return 0, errBodyLost
	case len(b.readAhead) > 0:
		return b.takeAhead(a, p)
	case b.end != nil:
		return 0, b.end
	}
	return b.readClient(a, p)
}

// takeAhead gives a what was read for the attempt before.
func (b *Body) takeAhead(a *Attempt, p []byte) (int, error) {
	if !a.owns() {
		return 0, errNotOwned
	}
	n := copy(p, b.readAhead)
	b.readAhead = b.readAhead[n:]
	b.deliver(p[:n])
	return n, nil
}

// readClient reads what the client sends next. It is for a, if a still owns the body by then, or else for the next attempt.
func (b *Body) readClient(a *Attempt, p []byte) (int, error) {
	b.end = errPanicked // of a read that does not return: what follows is not the body's continuation
	n, err := b.readUnlocked(p)
	b.lastRead = time.Now()
	if b.end = err; err != nil && err != io.EOF {
		b.failure = err
	}
	if !a.owns() {
		b.readAhead = bytes.Clone(p[:n])
		return 0, errNotOwned
	}
	b.deliver(p[:n])
	return n, err
}

// deliver counts p as given to an attempt, and keeps it for further ones.
func (b *Body) deliver(p []byte) {
	b.read += int64(len(p))
	switch {
	case len(p) == 0 || b.truncated:
	case len(b.kept)+len(p) > b.keep:
		b.truncated, b.kept = true, nil
	default:
		b.kept = append(b.kept, p...)
	}
}

// readUnlocked reads the client. The caller holds b.mu, which is free meanwhile.
func (b *Body) readUnlocked(p []byte) (int, error) {
	before := b.read
	b.startReading()
	defer b.stopReading()
	return b.readDeclared(p, before)
}

// awaitReader waits while another goroutine reads the client. The caller holds b.mu.
func (b *Body) awaitReader() {
	for b.reading {
		b.changed.Wait()
	}
}

// startReading takes the client's body, and unlocks b.mu until stopReading.
func (b *Body) startReading() {
	b.reading = true
	b.mu.Unlock()
}

// stopReading locks b.mu, and gives the client's body back.
func (b *Body) stopReading() {
	b.mu.Lock()
	b.reading = false
	b.changed.Broadcast()
}

// wake makes those that wait for changed look again.
func (b *Body) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
}
