package engine

import (
	"fmt"
	"log/slog"

	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// streamLimitConnModule limits the sessions that run at a time (ngx_stream_limit_conn_module.c).
var streamLimitConnModule = module{
	directives: []directive{
		{name: "limit_conn", repeatable: true, compile: limitConn},
		{name: "limit_conn_dry_run", compile: setFlag(limitConnSlot, func(s *limitConnSettings) *bool { return &s.dryRun })},
		{name: "limit_conn_log_level", compile: setWord(limitConnSlot, func(s *limitConnSettings) *slog.Level { return &s.level }, limitLogLevels)},
		{name: "limit_conn_zone", repeatable: true, declare: declareConnZone},
	},
}

// sessionLimit returns what counts a level's sessions under each of their keys, nil if there is no limit.
func sessionLimit(l *level) func(*stream.Session) (leave func(), ok bool) {
	settings := limitConnSlot.of(l)
	if len(settings.limits) == 0 {
		return nil
	}
	return settings.enter
}

// enter counts a session, unless that would be too many of a key. leave undoes it.
func (c *limitConnSettings) enter(s *stream.Session) (leave func(), ok bool) {
	var counted []countedRequest
	leave = func() {
		for _, c := range counted {
			c.in.Leave(c.key)
		}
	}
	for _, rule := range c.limits {
		key := rule.zone.key.String(&s.Request)
		if len(key) > 255 {
			s.Error(fmt.Sprintf("the value of the \"%s\" key is more than 255 bytes: \"%s\"", rule.zone.text, key))
			continue
		}
		if key == "" {
			continue
		}
		s.SetLimitStatus("PASSED")
		in, known := rule.zone.memory.Enter(key, rule.max)
		if in {
			counted = append(counted, countedRequest{rule.zone.memory, key})
			continue
		}
		leave() // a refused session counts nowhere
		counted = nil
		c.logRefusal(s, rule.zone.name, known)
		s.SetLimitStatus("REJECTED" + dryRunSuffix(c.dryRun))
		return leave, c.dryRun
	}
	return leave, true
}

// logRefusal logs why a session is refused: known is false if a zone has no room for the key.
func (c *limitConnSettings) logRefusal(s *stream.Session, zone string, known bool) {
	if !known {
		s.LogAt(levelCrit, "no memory in limit_conn_zone \""+zone+"\"")
		return
	}
	dry := ""
	if c.dryRun {
		dry = ", dry run,"
	}
	s.LogAt(c.level, "limiting connections"+dry+" by zone \""+zone+"\"")
}
