package engine

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/leasttime"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/upstream"
)

// leastTime is "least_time" of a group.
type leastTime struct {
	*leasttime.Peers
	measure string // header or last_byte; connect, first_byte or last_byte of stream
}

// defaultFailTimeout is that of a server that names none.
const defaultFailTimeout = 10 * time.Second

// leastTime compiles "least_time header|last_byte [inflight]", and "least_time connect|first_byte|last_byte [inflight]" of stream.
func (g *group) leastTime(c *compiler, d *conf.Directive) error {
	words := []string{"header", "last_byte"}
	if c.stream {
		words = []string{"connect", "first_byte", "last_byte"}
	}
	if len(d.Args) == 2 && d.Args[1] != "inflight" {
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	}
	if !slices.Contains(words, d.Args[0]) {
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	peers := &leasttime.Peers{Inflight: len(d.Args) == 2, FailTimeout: g.failTimeouts()}
	g.least = &leastTime{peers, d.Args[0]}
	g.balance = upstream.BalanceFunc(peers.Choose)
	return nil
}

// failTimeouts returns what returns the fail_timeout of a server of the group, all of whose servers are known by its first call.
func (g *group) failTimeouts() func(addr string) time.Duration {
	byAddr := sync.OnceValue(func() map[string]time.Duration {
		all := map[string]time.Duration{}
		for _, t := range g.targets {
			all[t.Addr] = t.FailTimeout
		}
		return all
	})
	return func(addr string) time.Duration { return cmp.Or(byAddr()[addr], defaultFailTimeout) }
}

// onAttempt is a proxy.Options.OnAttempt, nil if l is nil. Failed attempts do not count.
func (l *leastTime) onAttempt() func(*http.Request, string) func(culvert.Attempt) {
	if l == nil {
		return nil
	}
	return func(_ *http.Request, target string) func(culvert.Attempt) {
		end := l.Begin(target)
		return func(a culvert.Attempt) {
			switch {
			case a.Err != nil || a.Status == 0:
				end(-1)
			case l.measure == "header":
				end(a.TimeToHeader)
			default:
				end(a.Total)
			}
		}
	}
}

// onSession is a stream.Upstream's Observe, nil if l is nil.
func (l *leastTime) onSession() func(addr string) func(stream.Times) {
	if l == nil {
		return nil
	}
	return func(addr string) func(stream.Times) {
		end := l.Begin(addr)
		return func(t stream.Times) {
			took := map[string]time.Duration{"connect": t.Connect, "first_byte": t.FirstByte, "last_byte": t.Total}[l.measure]
			if t.Failed {
				took = -1
			}
			end(took)
		}
	}
}
