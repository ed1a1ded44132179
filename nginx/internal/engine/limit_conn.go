package engine

import (
	"log/slog"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// connLimit is one limit_conn: how many requests of a key may run at a time.
type connLimit struct {
	zone *zone[*running]
	max  int
}

// limitConnSettings are a level's limit_conn directives
// (ngx_http_limit_conn_module.c).
type limitConnSettings struct {
	limits []connLimit
	status int
	level  slog.Level
	dryRun bool
}

// declareConnZone compiles "limit_conn_zone key zone=name:size".
func (c *compiler) declareConnZone(d *conf.Directive) error {
	if !strings.HasPrefix(d.Args[1], "zone=") {
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	}
	z, err := newZone(c, d, d.Args[1], newRunning)
	if err != nil {
		return err
	}
	if err := z.checkUnique(d, c.engine.shared.connZones[z.name], c.engine.shared.requestZones[z.name] != nil); err != nil {
		return err
	}
	c.engine.shared.connZones[z.name] = z
	c.deferred = append(c.deferred, func() error { return z.takeOver("limit_conn_zone", c.before.connZones[z.name]) })
	return nil
}

// limitConn compiles "limit_conn zone number".
func limitConn(c *compiler, l *level, d *conf.Directive) error {
	if l.first("limit_conn") {
		l.limitConn.limits = nil
	}
	z := c.engine.shared.connZones[d.Args[0]]
	if z == nil {
		return errNoZone(d, d.Args[0], c.engine.shared.requestZones[d.Args[0]] != nil)
	}
	n, ok := conf.Number(d.Args[1])
	if !ok || n == 0 {
		return d.Errorf("invalid number of connections \"%s\"", d.Args[1])
	}
	if n > 65535 {
		return d.Errorf("connection limit must be less 65536")
	}
	for _, have := range l.limitConn.limits {
		if have.zone == z {
			return d.Errorf("\"limit_conn\" directive is duplicate")
		}
	}
	l.limitConn.limits = append(l.limitConn.limits, connLimit{z, n})
	return nil
}

func limitConnStatus(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.limitConn.status, err = limitStatus(d)
	return err
}

func limitConnLogLevel(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.limitConn.level, err = limitLogLevel(d)
	return err
}

func limitConnDryRun(_ *compiler, l *level, d *conf.Directive) error {
	l.limitConn.dryRun = d.Flag()
	return nil
}

// limitStatus parses the status of a refusal.
func limitStatus(d *conf.Directive) (int, error) {
	n, err := d.Number()
	if err == nil && (n < 400 || n > 599) {
		err = d.Errorf("value must be between 400 and 599")
	}
	return n, err
}

func limitLogLevel(d *conf.Directive) (slog.Level, error) {
	levels := map[string]slog.Level{"info": levelInfo, "notice": LevelNotice, "warn": slog.LevelWarn, "error": levelError}
	l, ok := levels[d.Args[0]]
	if !ok {
		return 0, d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	return l, nil
}

func dryRunSuffix(dry bool) string {
	if dry {
		return "_DRY_RUN"
	}
	return ""
}

func dryRunText(dry bool) string {
	if dry {
		return ", dry run"
	}
	return ""
}

// limitConnections counts the request under each of its keys until it has ended.
func (x *exchange) limitConnections() int {
	if x.LimitConnStatus != "" {
		return 0
	}
	var leave []func()
	for _, limit := range x.level.limitConn.limits {
		key := limit.zone.keyOf(x, 255)
		if key == "" {
			continue
		}
		x.LimitConnStatus = "PASSED"
		in, known := limit.zone.memory.enter(key, limit.max)
		if !in {
			for _, f := range leave {
				f() // a refused request counts nowhere
			}
			return x.refuseConnection(limit.zone.name, known)
		}
		memory := limit.zone.memory
		leave = append(leave, func() { memory.leave(key) })
	}
	x.atEnd = append(x.atEnd, leave...)
	return 0
}

// refuseConnection logs why the request is refused: known is false if a zone has no room for the
// key. It returns 0 in a dry run.
func (x *exchange) refuseConnection(zone string, known bool) int {
	s := &x.level.limitConn
	if known {
		dry := ""
		if s.dryRun {
			dry = ", dry run,"
		}
		x.logAt(s.level, "limiting connections"+dry+" by zone \""+zone+"\"", "")
	} else {
		x.logAt(levelCrit, "no memory in limit_conn_zone \""+zone+"\"", "")
	}
	x.LimitConnStatus = "REJECTED" + dryRunSuffix(s.dryRun)
	if s.dryRun {
		return 0
	}
	return s.status
}
