package replay

import "time"

// AwaitsClient reports whether the attempt waits for the client, or has failed since the client took too long. A read that
// an attempt before has left may await the client still, while this one waits for its target.
func (a *Attempt) AwaitsClient() bool {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	return a.awaitsClient()
}

func (a *Attempt) awaitsClient() bool { return a.waits && a.body.client.Awaited() }

// TargetTime returns how much of the time to a response's header, of an attempt that started then, the target is to blame
// for: none while the client was still sending. A target that responds while the client is waited for has not been waited
// for, nor has one that had no body yet since it was given time to refuse it. It is called when the header has been
// received, or the attempt has failed.
func (a *Attempt) TargetTime(started time.Time, toHeader time.Duration) time.Duration {
	if a.body.reader == nil || toHeader == 0 {
		return toHeader
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	if a.awaitsClient() || a.expect == expectWithheld {
		return 0
	}
	if sent := a.lastRead.Sub(started); !a.lastRead.IsZero() && sent > 0 {
		return max(0, toHeader-sent)
	}
	return toHeader
}
