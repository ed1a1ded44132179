package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
)

// script is the compiled form of a level's set, rewrite, return, break and if, which run in the
// order in which they stand (ngx_http_rewrite_module.c).
type script []func(x *exchange, run *scriptRun)

// addStep adds a step to a level's script.
func addStep(l *level, step func(x *exchange, run *scriptRun)) {
	s := rewriteSlot.edit(l)
	s.script = append(s.script, step)
}

// scriptRun is the state of a running script.
type scriptRun struct {
	done    bool
	changed bool        // the path has changed: its location must be found
	returns *returnRule // what sends the response
}

// runScript runs a level's script. done is true if it has sent a response, or has ended with the
// status of an error page.
func runScript(x *exchange, w http.ResponseWriter) (status int, changed, done bool) {
	s := rewriteSlot.of(x.level).script
	if len(s) == 0 {
		return 0, false, false
	}
	var run scriptRun
	s.run(x, &run)
	if status := x.failedPattern(); status != 0 {
		return status, false, true
	}
	if run.returns == nil {
		return 0, run.changed, false
	}
	return x.filtered(x.level.phases.body, w, run.returns.serve), false, true
}

func (s script) run(x *exchange, run *scriptRun) {
	for _, step := range s {
		if step(x, run); run.done || x.Failed() {
			return
		}
	}
}

// breakDirective compiles "break": the rest of the script does not run, and the location is kept.
func breakDirective(_ *compiler, l *level, _ *conf.Directive) error {
	addStep(l, func(x *exchange, run *scriptRun) {
		x.uriRewritten = x.uriRewritten || run.changed // as by a rewrite with break
		run.done, run.changed = true, false
	})
	return nil
}
