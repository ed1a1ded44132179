package replay

import "github.com/culvert-go/culvert/internal/clientbody"

var _ clientbody.Receiver = (*Attempt)(nil)

// Ready implements clientbody.Receiver. A body that the target may refuse, so that its client waits for a 100, is not.
func (a *Attempt) Ready() bool {
	if a.whole != nil {
		return true
	}
	b := a.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.expect != expectNothing || !a.owns():
		return false
	case a.sent < int64(len(b.kept)):
		return true
	case b.reading:
		return false
	}
	return len(b.readAhead) > 0 || b.end != nil || b.client.Ready()
}

// Received implements clientbody.Receiver. It knows that of a body that is held as a whole alone, or does not exist.
func (a *Attempt) Received() bool { return a.whole != nil || !a.body.Exists() }
