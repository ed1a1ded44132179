package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// accessLogger is one access_log.
type accessLogger struct {
	out       accessOutput
	line      logFormat
	condition *vars.Value // of if=, nil for none
}

// accessOutput receives the lines of an access log.
type accessOutput interface {
	log(x *exchange, line *logFormat)
}

// accessLog compiles "access_log path|syslog:... [format [parameters]]" and "access_log off".
// Lines are written at once: buffer, flush and gzip are accepted and have no effect.
func accessLog(c *compiler, l *level, d *conf.Directive) error {
	if l.first("access_log") {
		l.accessLogs = nil
	}
	name := d.Args[0]
	switch {
	case name == "off" && len(d.Args) > 1:
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	case name == "off":
		l.accessLogs = nil
		return nil
	}
	log, err := c.accessLogger(d)
	if err != nil {
		return err
	}
	l.accessLogs = append(l.accessLogs, log)
	return nil
}

// accessLogger compiles every access_log but "off". As in nginx, a syslog server and variables
// are parsed first, and a file, which has to be opened, last.
func (c *compiler) accessLogger(d *conf.Directive) (log accessLogger, err error) {
	toSyslog, named := strings.HasPrefix(d.Args[0], syslogPrefix), strings.Contains(d.Args[0], "$")
	switch {
	case toSyslog:
		log.out, err = c.syslog(d)
	case named:
		log.out, err = c.variableLog(d)
	}
	if err != nil {
		return log, err
	}
	if log.line, err = c.accessFormat(d); err != nil {
		return log, err
	}
	buffered := false
	if log.condition, buffered, err = c.accessParameters(d); err != nil {
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

// accessFormat returns the format that the second argument names, "combined" if there is none.
func (c *compiler) accessFormat(d *conf.Directive) (logFormat, error) {
	name := "combined"
	if len(d.Args) > 1 {
		name = d.Args[1]
	}
	line := c.formats[name]
	if !line.Defined() {
		return line, d.Errorf("unknown log format \"%s\"", name)
	}
	return line, nil
}

// accessParameters parses the parameters behind the format.
func (c *compiler) accessParameters(d *conf.Directive) (condition *vars.Value, buffered bool, err error) {
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

// log writes a line about x to each of the level's access logs.
func (l *level) log(x *exchange) {
	for i := range l.accessLogs {
		a := &l.accessLogs[i]
		if a.condition != nil {
			if v := a.condition.String(&x.Request); v == "" || v == "0" {
				continue
			}
		}
		a.out.log(x, &a.line)
	}
}
