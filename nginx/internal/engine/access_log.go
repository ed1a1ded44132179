package engine

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// logModule logs requests (ngx_http_log_module.c).
var logModule = module{
	directives: []directive{
		{name: "access_log", repeatable: true, compile: accessLog, notFollowed: compressedLog},
		{name: "log_subrequest", compile: setFlag(logSlot, func(s *logSettings) *bool { return &s.subrequests })},
		{name: "log_format", repeatable: true, declare: declareFormat},
	},
	active: func(l *level) bool { return len(logSlot.of(l).loggers) > 0 },
	hooks:  hooks{log: logRequest},
}

type logSettings struct {
	loggers []accessLogger
	formats map[string]logFormat // of http

	subrequests bool // log_subrequest
}

var logSlot = newSlot(logSettings{})

// accessLogger is one access_log.
type accessLogger struct {
	out       accessOutput
	line      logFormat
	condition *vars.Value // of if=, nil for none
}

// accessOutput receives the lines of an access log.
type accessOutput interface {
	log(x logged, line *logFormat)
}

// logged is a request, or a session of stream, that an access log has a line about.
type logged interface {
	variables() *vars.Request
	// logAt writes an error about it to its own error log.
	logAt(level slog.Level, text, upstream string)
}

func (x *exchange) variables() *vars.Request { return &x.Request }

// accessLog compiles "access_log path|syslog:... [format [parameters]]" and "access_log off".
// Lines are written at once: buffer, flush and gzip are accepted and have no effect.
func accessLog(c *compiler, l *level, d *conf.Directive) error {
	s := logSlot.edit(l)
	if l.first("access_log") {
		s.loggers = nil
	}
	name := d.Args[0]
	switch {
	case name == "off" && len(d.Args) > 1:
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	case name == "off":
		s.loggers = nil
		return nil
	}
	log, err := newAccessLogger(c, s.formats, d)
	if err != nil {
		return err
	}
	s.loggers = append(s.loggers, log)
	return nil
}

func compressedLog(d *conf.Directive) string {
	compresses := func(parameter string) bool { return parameter == "gzip" || strings.HasPrefix(parameter, "gzip=") }
	if slices.ContainsFunc(d.Args[min(2, len(d.Args)):], compresses) {
		return "lines are written at once, not compressed"
	}
	return ""
}

// newAccessLogger compiles every access_log but "off". As in nginx, a syslog server and variables
// are parsed first, and a file, which has to be opened, last.
func newAccessLogger(c *compiler, formats map[string]logFormat, d *conf.Directive) (log accessLogger, err error) {
	toSyslog, named := strings.HasPrefix(d.Args[0], syslogPrefix), strings.Contains(d.Args[0], "$")
	switch {
	case toSyslog:
		log.out, err = newSyslog(c, d)
	case named:
		log.out, err = newVariableLog(c, d)
	}
	if err != nil {
		return log, err
	}
	if log.line, err = findFormat(c, formats, d); err != nil {
		return log, err
	}
	buffered := false
	if log.condition, buffered, err = logParameters(c, d); err != nil {
		return log, err
	}
	switch {
	case named && !toSyslog && buffered:
		return log, d.Errorf("buffered logs cannot have variables in name")
	case toSyslog && buffered:
		return log, d.Errorf("logs to syslog cannot be buffered")
	case log.out != nil:
		return log, nil
	}
	file, err := c.engine.files.open(c.path(d.Args[0]))
	if err != nil {
		return log, &conf.Error{What: err.Error()}
	}
	log.out = file
	return log, nil
}

// findFormat returns the format that the second argument names, "combined" if there is none.
func findFormat(c *compiler, formats map[string]logFormat, d *conf.Directive) (logFormat, error) {
	if c.stream && len(d.Args) == 1 {
		return logFormat{}, d.Errorf("log format is not specified")
	}
	if !c.stream && (len(d.Args) == 1 || d.Args[1] == combinedName) {
		return c.scope.CompileLine(combined, vars.EscapeDefault)
	}
	name := d.Args[1]
	line := formats[name]
	if !line.Defined() {
		return line, d.Errorf("unknown log format \"%s\"", name)
	}
	return line, nil
}

// logParameters parses the parameters behind the format.
func logParameters(c *compiler, d *conf.Directive) (condition *vars.Value, buffered bool, err error) {
	flushed := false
	for _, p := range d.Args[min(2, len(d.Args)):] {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case ok && key == "buffer":
			if n, ok := conf.Size(value); !ok || n == 0 {
				return nil, false, d.Errorf("invalid buffer size \"%s\"", value)
			}
			buffered = true
		case ok && key == "flush":
			if t, ok := conf.Duration(value); !ok || t == 0 {
				return nil, false, d.Errorf("invalid flush time \"%s\"", value)
			}
			flushed = true
		case key == "gzip":
			if n, number := conf.Number(value); ok && (!number || n < 1 || n > 9) {
				return nil, false, d.Errorf("invalid compression level \"%s\"", value)
			}
			buffered = true
		case ok && key == "if":
			v, err := c.value(d, value)
			if err != nil {
				return nil, false, err
			}
			condition = &v
		default:
			return nil, false, d.Errorf("invalid parameter \"%s\"", p)
		}
	}
	if flushed && !buffered {
		return nil, false, d.Errorf("no buffer is defined for access_log \"%s\"", d.Args[0])
	}
	return condition, buffered, nil
}

// logRequest writes a line about x to each of the level's access logs.
func logRequest(x *exchange) {
	loggers := logSlot.of(x.level).loggers
	for i := range loggers {
		loggers[i].write(x)
	}
}

// write writes a line about x, if the condition permits.
func (a *accessLogger) write(x logged) {
	if a.condition != nil {
		if v := a.condition.String(x.variables()); v == "" || v == "0" {
			return
		}
	}
	a.out.log(x, &a.line)
}
