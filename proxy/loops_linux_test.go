package proxy_test

import (
	"time"

	"github.com/culvert-go/culvert/internal/netloop"
)

// Each test of a tunnel waits for the end of its loops.
func init() { netloop.IdleTime = 10 * time.Millisecond }
