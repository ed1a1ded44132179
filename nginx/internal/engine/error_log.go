package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// errorLogModule logs errors.
var errorLogModule = module{
	directives: []directive{
		{name: "error_log", repeatable: true, compile: errorLog},
	},
}

var errorLogSlot = newSlot((*errorLogger)(nil))

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

// errorLogger is the error logs of a level, each with its own least level. It is a slog.Handler.
type errorLogger struct {
	sinks  []errorSink
	suffix string // attributes of With
}

// errorSink is one error_log: a file, or a syslog server in its place.
type errorSink struct {
	file   *logFile
	syslog *syslogServer
	least  slog.Level
}

// errorLog compiles "error_log file|stderr|syslog:... [level]".
func errorLog(c *compiler, l *level, d *conf.Directive) error {
	if len(d.Args) > 2 {
		return d.Errorf("invalid log level \"%s\"", d.Args[2])
	}
	sink, err := openSink(c, d)
	if err != nil {
		return err
	}
	log, next := errorLogSlot.edit(l), &errorLogger{}
	if !l.first("error_log") {
		next.sinks = slices.Clone((*log).sinks)
	}
	next.sinks = append(next.sinks, sink)
	*log = next
	return nil
}

// openSink opens the log that an error_log names. As in nginx, a syslog server is parsed before
// the level, and a file, which has to be opened, after it.
func openSink(c *compiler, d *conf.Directive) (s errorSink, err error) {
	name := d.Args[0]
	switch {
	case strings.HasPrefix(name, "memory:"):
		return s, d.Errorf("error log \"%s\" is not supported by culvert yet", name)
	case strings.HasPrefix(name, syslogPrefix):
		if s.syslog, err = newSyslog(c, d); err != nil {
			return s, err
		}
		s.least, err = leastLevel(d)
		return s, err
	}
	if s.least, err = leastLevel(d); err != nil {
		return s, err
	}
	if name != logStderr {
		name = c.path(name)
	}
	if s.file, err = c.engine.files.open(name); err != nil {
		return s, &conf.Error{What: err.Error()}
	}
	return s, nil
}

// leastLevel parses the level of an error_log.
func leastLevel(d *conf.Directive) (slog.Level, error) {
	if len(d.Args) == 1 {
		return slog.LevelError, nil
	}
	for _, n := range levelNames {
		if n.name == d.Args[1] {
			return n.level, nil
		}
	}
	return 0, d.Errorf("invalid log level \"%s\"", d.Args[1])
}

// levelName returns nginx's name of a level, or of the next one below.
func levelName(level slog.Level) string {
	name := "error"
	for _, n := range levelNames {
		if level >= n.level {
			name = n.name
		}
	}
	return name
}

// file returns the first of the files, nil if there is none.
func (e *errorLogger) file() *logFile {
	for _, s := range e.sinks {
		if s.file != nil {
			return s.file
		}
	}
	return nil
}

// Enabled implements slog.Handler.
func (e *errorLogger) Enabled(_ context.Context, level slog.Level) bool {
	for _, s := range e.sinks {
		if level >= s.least {
			return true
		}
	}
	return false
}

// Handle writes a record as nginx does: "2026/11/21 04:02:00 [error] 7#7: text, key: value".
func (e *errorLogger) Handle(_ context.Context, r slog.Record) error {
	e.write(&r, nil)
	return nil
}

// write writes a record. A record about a failed syslog server is sent only to the other logs; if
// one of these fails too, that is not reported: it would never end.
func (e *errorLogger) write(r *slog.Record, failed *syslogServer) {
	attrs := e.suffix
	r.Attrs(func(a slog.Attr) bool {
		attrs += ", " + a.Key + ": " + a.Value.String()
		return true
	})
	pid := os.Getpid()
	line := func(b []byte) []byte {
		b = r.Time.AppendFormat(b, "2006/01/02 15:04:05")
		return append(fmt.Appendf(b, " [%s] %d#%d: %s", levelName(r.Level), pid, pid, r.Message), attrs...)
	}
	for _, s := range e.sinks {
		switch {
		case r.Level < s.least || failed != nil && s.syslog == failed:
		case s.syslog != nil:
			s.syslog.logError(r, line, failed == nil)
		default:
			s.file.writeLine(line)
		}
	}
}

// Warn writes a warning about the configuration to the main error log regardless of the log's
// level. As with nginx, the warning is about what was read before the level applies.
func (e *Engine) Warn(text string) {
	all := &errorLogger{}
	for _, s := range e.mainLog.sinks {
		s.least = slog.LevelWarn
		all.sinks = append(all.sinks, s)
	}
	_ = all.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelWarn, text, 0))
}

// WithAttrs implements slog.Handler.
func (e *errorLogger) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := &errorLogger{sinks: e.sinks, suffix: e.suffix}
	for _, a := range attrs {
		next.suffix += ", " + a.Key + ": " + a.Value.String()
	}
	return next
}

// WithGroup implements slog.Handler. nginx's lines have no groups.
func (e *errorLogger) WithGroup(string) slog.Handler { return e }

// logError writes an error of x to its level's log, with nginx's description of the request.
func (x *exchange) logError(text string) { x.logAt(levelError, text, "") }

func (x *exchange) logAt(level slog.Level, text, upstream string) {
	log := *errorLogSlot.of(x.level)
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
