package stream

import (
	"context"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// rate parses a number of bytes per second; 0 is no bound, as is what is no number.
func rate(text string) int64 {
	n, _ := conf.Size(text)
	return n
}

// limiter bounds the bytes of one direction as nginx does: by whole seconds since the session's beginning, so that the first
// second's bytes may be moved at once.
type limiter struct {
	rate  int64 // 0: no bound
	began int64 // Unix time, in seconds
	moved int64
}

// wait waits until bytes may be moved, and returns how many.
func (l *limiter) wait(ctx context.Context, most int) (int, bool) {
	for l.rate > 0 {
		left := l.rate*(time.Now().Unix()-l.began+1) - l.moved
		if left > 0 {
			return int(min(int64(most), left)), true
		}
		if !pause(ctx, time.Duration(-left*1000/l.rate+1)*time.Millisecond) {
			return 0, false
		}
	}
	return most, true
}

// add counts n bytes, and waits as long as they take at the rate.
func (l *limiter) add(ctx context.Context, n int) bool {
	if l.rate == 0 {
		return true
	}
	l.moved += int64(n)
	return pause(ctx, time.Duration(int64(n)*1000/l.rate)*time.Millisecond)
}

// pause waits for d, and reports whether ctx has not ended before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
