package relay

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
)

// Whose failure it is that a body could not be read before the end of the exchange's time.
func TestBlameAtTheEndOfTheTime(t *testing.T) {
	end := time.Now()
	ctx, cancel := context.WithDeadlineCause(context.Background(), end, context.DeadlineExceeded)
	defer cancel()
	<-ctx.Done()
	for _, test := range []struct {
		name  string
		taken time.Time
		kind  fault.Kind
	}{
		{"the client has just accepted a piece", end.Add(-leastWait / 2), fault.ClientGone},
		{"the client was served long ago", end.Add(-2 * leastWait), fault.Timeout},
		{"nothing was written to the client", time.Time{}, fault.Timeout},
	} {
		c := client{end: end, taken: test.taken}
		if e := fault.As(c.readFailed(ctx, errors.New("read"))); e.Kind != test.kind {
			t.Errorf("%s: %v, want %v", test.name, e.Kind, test.kind)
		}
	}
}
