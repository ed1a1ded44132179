package simulate

import "time"

// modelBudget is proxy.RetryBudget as it is documented: a ratio of the requests and some a second, saved up for ten
// seconds.
type modelBudget struct {
	on     bool
	tokens float64
	last   time.Duration
}

// The budget of plans that have one.
const (
	budgetRatio     = 0.2
	budgetPerSecond = 1
)

func newModelBudget(g *GatewayPlan) *modelBudget {
	return &modelBudget{on: g.Budget, tokens: budgetPerSecond}
}

// pass adds what time brings.
func (b *modelBudget) pass(at time.Duration) {
	if most := 10. * budgetPerSecond; b.tokens < most {
		b.tokens = min(b.tokens+(at-b.last).Seconds()*budgetPerSecond, most)
	}
	b.last = at
}

// earn is called for each request, once its target is picked.
func (b *modelBudget) earn(at time.Duration) {
	b.pass(at)
	b.tokens = min(b.tokens+budgetRatio, 10*100*budgetRatio)
}

// spend is called for each attempt but the first. A retry for which there was no target costs the budget as well, so
// that it may have less than b.
func (b *modelBudget) spend(m *model, w *wait) {
	b.pass(m.at)
	if b.tokens--; b.on && b.tokens < -1e-6 {
		m.fail("budget", "#%d is retried, and the budget has %.3f retries", w.p.Token, b.tokens+1)
		b.tokens = 0
	}
}
