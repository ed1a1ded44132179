package simulate

import "time"

// modelBudget is proxy.RetryBudget as it is documented: a ratio of the requests and some a second, saved up for ten
// seconds.
type modelBudget struct {
	on     bool
	tokens float64 // it has no more
	least  float64 // and no less: what is not retried, since there was no target, has held one retry for a while
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

// pass adds what time brings.
func (b *modelBudget) pass(at time.Duration) {
	brought := (at - b.last).Seconds() * budgetPerSecond
	for _, n := range []*float64{&b.tokens, &b.least} {
		if most := 10. * budgetPerSecond; *n < most {
			*n = min(*n+brought, most)
		}
	}
	b.last = at
}

// earn is called for each request, once its target is picked. Where it is not sure that it was, the budget may have less.
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

// cost is called for what may have taken or held a retry.
func (b *modelBudget) cost() { b.least = max(0, b.least-1) }
