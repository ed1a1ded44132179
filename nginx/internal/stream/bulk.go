package stream

import (
	"errors"
	"io"
	"os"
	"time"
)

const (
	// bulkSize is how many bytes are moved before the session's counts are brought up to date.
	bulkSize = 256 << 10
	// bulkPause is how long a sender of bulk may pause before its connection is read with a buffer again.
	bulkPause = 100 * time.Millisecond
)

// bulk moves bytes between two TCP connections without a buffer of this process (splice(2), where the system has it) for as long
// as the sender does not pause. It is called when a read has filled the buffer: idle connections hold no pipe.
func (d *direction) bulk() error {
	from, to := plain(d.from), plain(d.to)
	if from == nil || to == nil || d.limit.rate > 0 {
		return nil
	}
	for {
		_ = from.SetReadDeadline(time.Now().Add(bulkPause))
		if d.r.isEnded() { // whose deadline has just been overwritten
			return os.ErrDeadlineExceeded
		}
		n, err := to.ReadFrom(&io.LimitedReader{R: from, N: bulkSize})
		if n > 0 {
			d.count(int(n))
			d.sent.Add(n)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = from.SetReadDeadline(time.Time{})
			if d.r.isEnded() {
				return err
			}
			return nil
		case err != nil:
			return err
		case n < bulkSize:
			return io.EOF
		}
	}
}

func (r *relay) isEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}
