package simulate

import "time"

// modelBudget is proxy.RetryBudget as it is documented: a ratio of the requests and a number each second, saved for up to
// ten seconds.
type modelBudget struct {
	on     bool
	tokens float64 // the most that it may have
	least  float64 // the least: a request that was not retried, for lack of a target, may have held a retry for a while
	last   time.Duration
}

// The budget of plans that have one.
const (
	budgetRatio     = 0.2
	budgetPerSecond = 1
)

func newModelBudget(g *GatewayPlan) *modelBudget {
	return &modelBudget{on: g.Budget, tokens: budgetPerSecond, least: budgetPerSecond}
}

// pass adds the retries that the passage of time gives.
func (b *modelBudget) pass(at time.Duration) {
	brought := (at - b.last).Seconds() * budgetPerSecond
	for _, n := range []*float64{&b.tokens, &b.least} {
		if most := 10. * budgetPerSecond; *n < most {
			*n = min(*n+brought, most)
		}
	}
	b.last = at
}

// earn is called for each request when its target is picked. If it is not sure that one was, the budget may have less.
func (b *modelBudget) earn(at time.Duration, sure bool) {
	b.pass(at)
	const most = 10 * 100 * budgetRatio
	b.tokens = min(b.tokens+budgetRatio, most)
	if sure {
		b.least = min(b.least+budgetRatio, most)
	}
}

// spend is called for each attempt but the first.
func (b *modelBudget) spend(m *model, w *wait) {
	b.pass(m.at)
	b.cost()
	if b.tokens--; b.on && b.tokens < -1e-6 {
		m.fail("budget", "#%d is retried, and the budget has %.3f retries", w.p.Token, b.tokens+1)
		b.tokens = 0
	}
}

// cost is called for each request that may have spent or held a retry.
func (b *modelBudget) cost() { b.least = max(0, b.least-1) }
