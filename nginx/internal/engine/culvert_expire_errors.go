package engine

import "github.com/culvert-go/culvert/cachectl"

// culvertExpireErrorsModule has error pages without freshness expire at once, or not. nginx has no such directive: its pages say
// nothing, so that browsers may keep a 404 or a 410.
var culvertExpireErrorsModule = module{
	directives: []directive{
		{name: "culvert_expire_errors", compile: setFlag(expireErrorsSlot, func(on *bool) *bool { return on })},
	},
}

var expireErrorsSlot = newSlot(true)

// errorPageRules are those for the final headers of all responses. They come behind all that the configuration sets.
func errorPageRules() cachectl.Rules {
	rules := cachectl.ErrorPages()
	for i := range rules {
		rules[i].Match = cachectl.And(errorsExpire, rules[i].Match)
	}
	return rules
}

func errorsExpire(r *cachectl.Response) bool {
	x := exchangeOf(r.Request.Context())
	return *expireErrorsSlot.of(x.level)
}
