package engine

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/limit"
)

// limitConnModule limits the requests that run at a time (ngx_http_limit_conn_module.c).
var limitConnModule = module{
	directives: []directive{
		{name: "limit_conn", repeatable: true, compile: limitConn},
		{name: "limit_conn_dry_run", compile: setFlag(limitConnSlot, func(s *limitConnSettings) *bool { return &s.dryRun })},
		{name: "limit_conn_log_level", compile: setWord(limitConnSlot, func(s *limitConnSettings) *slog.Level { return &s.level }, limitLogLevels)},
		{name: "limit_conn_status", compile: limitConnStatus},
		{name: "limit_conn_zone", repeatable: true, declare: declareConnZone},
	},
	variables: map[string]variable{"limit_conn_status": nonEmpty(func(x *exchange) string { return x.limits.conn })},
	hooks:     hooks{preaccess: limitConnections},
}

var limitConnSlot = newSlot(limitConnSettings{status: 503, level: levelError})

// connLimit is one limit_conn: how many requests of a key may run at a time.
type connLimit struct {
	zone *zone[*limit.Running]
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
func declareConnZone(c *compiler, _ *level, d *conf.Directive) error {
	if !strings.HasPrefix(d.Args[1], "zone=") {
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	}
	z, err := newZone(c, d, d.Args[1], limit.NewRunning)
	if err != nil {
		return err
	}
	if err := z.checkUnique(d, c.connZones()[z.name], c.otherUse(z.name)); err != nil {
		return err
	}
	c.connZones()[z.name] = z
	c.deferred = append(c.deferred, func() error { return z.takeOver("limit_conn_zone", c.before.connZonesOf(c.stream)[z.name]) })
	return nil
}

// connZones returns the zones of http, or of stream.
func (c *compiler) connZones() map[string]*zone[*limit.Running] {
	return c.engine.shared.connZonesOf(c.stream)
}

// otherUse reports whether another module has a zone of the name.
func (c *compiler) otherUse(name string) bool {
	return c.engine.shared.requestZones[name] != nil || c.engine.shared.connZonesOf(!c.stream)[name] != nil
}

// limitConn compiles "limit_conn zone number".
func limitConn(c *compiler, l *level, d *conf.Directive) error {
	s := limitConnSlot.edit(l)
	if l.first("limit_conn") {
		s.limits = nil
	}
	z := c.connZones()[d.Args[0]]
	if z == nil {
		return errNoZone(d, d.Args[0], c.otherUse(d.Args[0]))
	}
	n, ok := conf.Number(d.Args[1])
	if !ok || n == 0 {
		return d.Errorf("invalid number of connections \"%s\"", d.Args[1])
	}
	if n > 65535 {
		return d.Errorf("connection limit must be less 65536")
	}
	for _, have := range s.limits {
		if have.zone == z {
			return d.Errorf("\"limit_conn\" directive is duplicate")
		}
	}
	s.limits = append(s.limits, connLimit{z, n})
	return nil
}

func limitConnStatus(_ *compiler, l *level, d *conf.Directive) (err error) {
	limitConnSlot.edit(l).status, err = limitStatus(d)
	return err
}

// limitStatus parses the status of a refusal.
func limitStatus(d *conf.Directive) (int, error) {
	n, err := d.Number()
	if err == nil && (n < 400 || n > 599) {
		err = d.Errorf("value must be between 400 and 599")
	}
	return n, err
}

// limitLogLevels are those of limit_conn_log_level and limit_req_log_level.
var limitLogLevels = map[string]slog.Level{"info": levelInfo, "notice": LevelNotice, "warn": slog.LevelWarn, "error": levelError}

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
func limitConnections(x *exchange) int {
	s := limitConnSlot.of(x.level)
	if x.limits.conn != "" || x.main != nil {
		return 0
	}
	var counted []countedRequest
	for _, rule := range s.limits {
		key := rule.zone.keyOf(x, 255)
		if key == "" {
			continue
		}
		x.limits.conn = "PASSED"
		in, known := rule.zone.memory.Enter(key, rule.max)
		if !in {
			for _, c := range counted {
				c.in.Leave(c.key) // a refused request counts nowhere
			}
			return s.refuse(x, rule.zone.name, known)
		}
		counted = append(counted, countedRequest{rule.zone.memory, key})
	}
	x.limits.counted = counted
	return 0
}

// limitState is what the limits have done to a request.
type limitState struct {
	req, conn string // $limit_req_status and $limit_conn_status; "" if there was no limit
	counted   []countedRequest
}

// countedRequest is where a request is counted.
type countedRequest struct {
	in  *limit.Running
	key string
}

// awaitSent returns when what a counted request has written was sent: over HTTP/2 and HTTP/3 the client's windows may hold it back as long
// as the client likes, and the request counts until then.
func (x *exchange) awaitSent(w http.ResponseWriter) {
	if len(x.limits.counted) > 0 && x.HTTP.ProtoMajor >= 2 {
		_ = http.NewResponseController(w).Flush()
	}
}

// leaveConnections is called when the request has ended.
func (x *exchange) leaveConnections() {
	for _, c := range x.limits.counted {
		c.in.Leave(c.key)
	}
}

// refuse logs why the request is refused: known is false if a zone has no room for the
// key. It returns 0 in a dry run.
func (s *limitConnSettings) refuse(x *exchange, zone string, known bool) int {
	if known {
		dry := ""
		if s.dryRun {
			dry = ", dry run,"
		}
		x.logAt(s.level, "limiting connections"+dry+" by zone \""+zone+"\"", "")
	} else {
		x.logAt(levelCrit, "no memory in limit_conn_zone \""+zone+"\"", "")
	}
	x.limits.conn = "REJECTED" + dryRunSuffix(s.dryRun)
	if s.dryRun {
		return 0
	}
	return s.status
}
