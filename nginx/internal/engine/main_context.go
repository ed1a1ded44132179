package engine

import (
	"github.com/culvert-go/culvert/nginx/conf"
)

// mainModule holds the directives of the main context.
var mainModule = module{
	directives: []directive{
		{name: "daemon", compile: daemon},
		{name: "events"},
		{name: "http", compile: httpBlock},
		{name: "stream", compile: streamBlock},
		{name: "pid", compile: pid},
		{name: "user", compile: userDirective},
		{name: "worker_shutdown_timeout", compile: workerShutdownTimeout},
	},
}

func pid(c *compiler, _ *level, d *conf.Directive) error {
	c.engine.settings.PIDFile = c.path(d.Args[0])
	return nil
}

func daemon(c *compiler, _ *level, d *conf.Directive) error {
	c.engine.settings.Daemon = d.Flag()
	return nil
}

func workerShutdownTimeout(c *compiler, _ *level, d *conf.Directive) (err error) {
	c.engine.settings.ShutdownTimeout, err = d.Duration()
	return err
}

// mainContext compiles the main context; http and stream go last, since they inherit the
// error log.
func (c *compiler) mainContext(list []*conf.Directive, errorLogName string) error {
	var events bool
	var late, early []*conf.Directive
	for _, d := range list {
		events = events || d.Name == "events"
		if d.Name == "http" || d.Name == "stream" {
			late = append(late, d)
		} else {
			early = append(early, d)
		}
	}
	main := newLevel()
	if err := c.own(main, early); err != nil {
		return err
	}
	log := errorLogSlot.of(main)
	if *log == nil || (*log).file() == nil { // nginx keeps a file beside syslog
		d := &conf.Directive{Name: "error_log", Args: []string{errorLogName}}
		if err := errorLog(c, main, d); err != nil {
			return err
		}
	}
	c.engine.setErrorLog(*errorLogSlot.of(main))
	if err := c.own(main, late); err != nil {
		return err
	}
	if !events {
		return &conf.Error{What: "no \"events\" section in configuration"}
	}
	return nil
}
