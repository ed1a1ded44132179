package engine

import (
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/examples/nginx/engine/vars"
)

// accessLogger is one access_log.
type accessLogger struct {
	file      *logFile
	line      logFormat
	condition *vars.Value // of if=, nil for none
}

// accessLog compiles "access_log path [format [parameters]]" and "access_log
// off". Lines are written as they come: buffer, flush and gzip are taken and do
// nothing.
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
	case strings.HasPrefix(name, "syslog:"), strings.Contains(name, "$"):
		return d.Errorf("access log \"%s\" is not supported by culvert yet", name)
	}
	log, format := accessLogger{}, "combined"
	for i, p := range d.Args[1:] {
		key, value, ok := strings.Cut(p, "=")
		switch {
		case i == 0 && (!ok || c.formats[p].Defined()):
			format = p
		case p == "gzip", ok && (key == "buffer" || key == "flush" || key == "gzip"):
		case ok && key == "if":
			v, err := c.value(d, value)
			if err != nil {
				return err
			}
			log.condition = &v
		default:
			return d.Errorf("invalid parameter \"%s\"", p)
		}
	}
	log.line = c.formats[format]
	if !log.line.Defined() {
		return d.Errorf("unknown log format \"%s\"", format)
	}
	file, err := c.engine.files.open(c.path(name))
	if err != nil {
		return &conf.Error{What: err.Error()}
	}
	log.file = file
	l.accessLogs = append(l.accessLogs, log)
	return nil
}

// log writes x to the level's logs.
func (l *level) log(x *exchange) {
	for _, a := range l.accessLogs {
		if a.condition != nil {
			if v := a.condition.String(&x.Request); v == "" || v == "0" {
				continue
			}
		}
		a.file.writeLine(func(b []byte) []byte { return a.line.Append(b, &x.Request) })
	}
}
