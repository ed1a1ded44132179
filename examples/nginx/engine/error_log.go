package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/examples/nginx/conf"
)

// nginx's levels between and above slog's.
const (
	LevelNotice = slog.LevelInfo + 2
	LevelEmerg  = slog.LevelError + 6

	levelInfo  = slog.LevelInfo
	levelError = slog.LevelError
	levelCrit  = slog.LevelError + 2
	levelAlert = slog.LevelError + 4
)

var levelNames = []struct {
	level slog.Level
	name  string
}{
	{slog.LevelDebug, "debug"},
	{slog.LevelInfo, "info"},
	{LevelNotice, "notice"},
	{slog.LevelWarn, "warn"},
	{slog.LevelError, "error"},
	{levelCrit, "crit"},
	{levelAlert, "alert"},
	{LevelEmerg, "emerg"},
}

// errorLogger is the error logs of a level: each has its own least level. It is
// a slog.Handler.
type errorLogger struct {
	sinks  []errorSink
	suffix string // attributes of With
}

type errorSink struct {
	file  *logFile
	least slog.Level
}

// errorLog compiles "error_log file [level]".
func errorLog(c *compiler, l *level, d *conf.Directive) error {
	if len(d.Args) > 2 {
		return d.Errorf("invalid log level \"%s\"", d.Args[2])
	}
	name := d.Args[0]
	if strings.HasPrefix(name, "syslog:") || strings.HasPrefix(name, "memory:") {
		return d.Errorf("error log \"%s\" is not supported by culvert yet", name)
	}
	least := slog.LevelError
	if len(d.Args) == 2 {
		i := slices.IndexFunc(levelNames, func(n struct {
			level slog.Level
			name  string
		}) bool {
			return n.name == d.Args[1]
		})
		if i < 0 {
			return d.Errorf("invalid log level \"%s\"", d.Args[1])
		}
		least = levelNames[i].level
	}
	if name != logStderr {
		name = c.path(name)
	}
	file, err := c.engine.files.open(name)
	if err != nil {
		return &conf.Error{What: err.Error()}
	}
	next := &errorLogger{}
	if !l.first("error_log") {
		next.sinks = slices.Clone(l.errorLog.sinks)
	}
	next.sinks = append(next.sinks, errorSink{file, least})
	l.errorLog = next
	return nil
}

// Enabled serves slog.
func (e *errorLogger) Enabled(_ context.Context, level slog.Level) bool {
	for _, s := range e.sinks {
		if level >= s.least {
			return true
		}
	}
	return false
}

// Handle writes a record as nginx does: "2026/11/21 04:02:00 [error] 7#7: text,
// key: value".
func (e *errorLogger) Handle(_ context.Context, r slog.Record) error {
	name := "error"
	for _, n := range levelNames {
		if r.Level >= n.level {
			name = n.name
		}
	}
	attrs := e.suffix
	r.Attrs(func(a slog.Attr) bool {
		attrs += ", " + a.Key + ": " + a.Value.String()
		return true
	})
	pid := os.Getpid()
	for _, s := range e.sinks {
		if r.Level >= s.least {
			s.file.writeLine(func(b []byte) []byte {
				b = r.Time.AppendFormat(b, "2006/01/02 15:04:05")
				return append(fmt.Appendf(b, " [%s] %d#%d: %s", name, pid, pid, r.Message), attrs...)
			})
		}
	}
	return nil
}

// WithAttrs serves slog.
func (e *errorLogger) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := &errorLogger{sinks: e.sinks, suffix: e.suffix}
	for _, a := range attrs {
		next.suffix += ", " + a.Key + ": " + a.Value.String()
	}
	return next
}

// WithGroup serves slog. nginx's lines have no groups.
func (e *errorLogger) WithGroup(string) slog.Handler { return e }

// logError writes an error of x to its level's log, with what nginx says about
// the request.
func (x *exchange) logError(text string) { x.logAt(levelError, text, "") }

func (x *exchange) logAt(level slog.Level, text, upstream string) {
	log := x.level.errorLog
	if !log.Enabled(context.Background(), level) {
		return
	}
	text = fmt.Sprintf("*%d %s, client: %s, server: %s, request: \"%s\"",
		x.Conn.Serial, text, x.RemoteAddr(), x.ServerName, x.Line)
	if upstream != "" {
		text += ", upstream: \"" + upstream + "\""
	}
	if x.HTTP.Host != "" {
		text += ", host: \"" + x.HTTP.Host + "\""
	}
	_ = log.Handle(context.Background(), slog.NewRecord(time.Now(), level, text, 0))
}
