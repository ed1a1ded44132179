package engine

import (
	"log/slog"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// loggedSession is a session that an access log has a line about.
type loggedSession struct{ *stream.Session }

func (s loggedSession) variables() *vars.Request { return &s.Request }

func (s loggedSession) logAt(level slog.Level, text, _ string) { s.LogAt(level, text) }

// sessionLog returns what writes a level's access logs, nil if there are none.
func sessionLog(l *level) func(*stream.Session) {
	loggers := logSlot.of(l).loggers
	if len(loggers) == 0 {
		return nil
	}
	return func(s *stream.Session) {
		for i := range loggers {
			loggers[i].write(loggedSession{s})
		}
	}
}
