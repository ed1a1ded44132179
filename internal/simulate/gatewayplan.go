package simulate

import (
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// GatewayPlan is the configuration of the gateway.
type GatewayPlan struct {
	Transport bool // the exchange runs over http.Transport
	H2Targets bool // the targets speak h2c
	Strict    bool // the transport is the program's own, and its requests wait for a stream

	Balance     int
	MaxConns    int
	MaxFails    int
	FailTimeout time.Duration
	Queue       int
	MaxInFlight int
	Check       bool
	CheckEvery  time.Duration
	FailStatus  bool

	DialTimeout, HeaderTimeout, TargetWrite time.Duration
	MaxIdle                                 int
	IdleTimeout                             time.Duration
	MaxConnRequests                         int

	RetryErrors, RetryTimeouts, RetryStatus, NonIdempotent, NoKeepBody, Budget bool
	Tries                                                                      int

	Timeout, BodyTimeout, ReadTimeout, WriteTimeout time.Duration
	RequestBuffer, ResponseBuffer                   int // 0: none; 1: in memory; 2: on disk
	BufferSize                                      int64
	FlushInterval                                   time.Duration
	ServerWrite                                     time.Duration // http.Server.WriteTimeout, 0: none
	Detach                                          bool
	Filters                                         []FilterPlan
	Hooks                                           HooksPlan
	Negative                                        bool // times without a bound are negative, not 0
	Server                                          bool // the server is package server's, not net/http's
	RetryWait, Hedge                                time.Duration
	Picker                                          bool // a Picker of the program's own stands before the group
	LateEnd                                         bool // a read of a request's body that fails lasts a moment longer
	Dynamic                                         bool // requests name their targets
	MaxTargets                                      int
	Introduces                                      upstream.ProxyProtocol
	Affine                                          bool // requests want targets
	Streams                                         bool // Options.StreamRequest
	KeepsNames                                      bool // Options.KeepFieldNames
}

// seconds returns a duration.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// newGatewayPlan chooses the configuration.
func newGatewayPlan(c *Choices) GatewayPlan {
	g := GatewayPlan{
		Transport:       c.Bool(3),
		H2Targets:       c.Bool(8),
		Balance:         c.Int(balances),
		MaxConns:        Pick(c, 0, 1, 2),
		MaxFails:        Pick(c, 0, 1, 3, -1),
		FailTimeout:     seconds(Pick(c, 10, 1, 30)),
		Queue:           Pick(c, 0, 1, 10),
		MaxInFlight:     Pick(c, 0, 0, 3),
		Check:           c.Bool(6),
		FailStatus:      c.Bool(4),
		DialTimeout:     seconds(Pick(c, 10, 2)),
		HeaderTimeout:   seconds(Pick(c, 60, 5, -1)),
		TargetWrite:     seconds(Pick(c, 60, 5)),
		MaxIdle:         Pick(c, 0, 1),
		IdleTimeout:     seconds(Pick(c, 60, 1)),
		MaxConnRequests: Pick(c, 0, 2),
		RetryErrors:     c.Bool(2),
		RetryTimeouts:   c.Bool(3),
		RetryStatus:     c.Bool(3),
		NonIdempotent:   c.Bool(5),
		NoKeepBody:      c.Bool(5),
		Budget:          c.Bool(5),
		Tries:           Pick(c, 0, 1, 2),
		Timeout:         seconds(Pick(c, 0, 0, 5, 30)),
		BodyTimeout:     seconds(Pick(c, 0, 5)),
		ReadTimeout:     seconds(Pick(c, 60, 5)),
		WriteTimeout:    seconds(Pick(c, 60, 5)),
		RequestBuffer:   Pick(c, 0, 0, 1, 2),
		ResponseBuffer:  Pick(c, 0, 0, 1, 2),
		FlushInterval:   Pick(c, 0, -1, 20*time.Millisecond),
		Detach:          c.Bool(3),
		CheckEvery:      Pick(c, 10*time.Second, 2*time.Second, 30*time.Second),
	}
	g.Filters = newFilterPlans(c)
	g.BufferSize = Pick[int64](c, 400<<10, 400<<10, 20<<10, 2<<10)
	return g
}

// addNegative chooses histories in which the gateway gives "no bound" as a negative time.
func (p *Plan) addNegative(c *Choices) { p.Gateway.Negative = c.Bool(8) }

// noneIs returns d, or a negative time if the plan gives no bound in this way. 0 is no bound for d.
func (g *GatewayPlan) noneIs(d time.Duration) time.Duration {
	if d == 0 && g.Negative {
		return -time.Second
	}
	return d
}

// addOwnBalance chooses histories in which the program balances.
func (p *Plan) addOwnBalance(c *Choices) {
	if c.Bool(12) {
		p.Gateway.Balance = balanceOwn
	}
}
