package engine

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/limit"
)

// limitReqModule limits the rate of requests (ngx_http_limit_req_module.c).
var limitReqModule = module{
	directives: []directive{
		{name: "limit_req", repeatable: true, compile: limitReq},
		{name: "limit_req_dry_run", compile: setFlag(limitReqSlot, func(s *limitReqSettings) *bool { return &s.dryRun })},
		{name: "limit_req_log_level", compile: setWord(limitReqSlot, func(s *limitReqSettings) *slog.Level { return &s.level }, limitLogLevels)},
		{name: "limit_req_status", compile: limitReqStatus},
		{name: "limit_req_zone", repeatable: true, declare: declareRequestZone},
	},
	variables: map[string]variable{"limit_req_status": nonEmpty(func(x *exchange) string { return x.limits.req })},
	active:    func(l *level) bool { return len(limitReqSlot.of(l).limits) > 0 },
	hooks:     hooks{preaccess: limitRequests},
}

var limitReqSlot = newSlot(limitReqSettings{status: 503, level: levelError})

// requestZone is a limit_req_zone.
type requestZone struct {
	*zone[*limit.Buckets]
	rate int64 // thousandths of a request per second
}

// plain returns the zone itself, nil for nil.
func (z *requestZone) plain() *zone[*limit.Buckets] {
	if z == nil {
		return nil
	}
	return z.zone
}

// requestLimit is one limit_req.
type requestLimit struct {
	zone  *requestZone
	burst int64 // thousandths
	delay int64 // from which excess on requests wait, in thousandths
}

// limitReqSettings are a level's limit_req directives.
type limitReqSettings struct {
	limits []requestLimit
	status int
	level  slog.Level
	dryRun bool
}

// declareRequestZone compiles "limit_req_zone key zone=name:size rate=rate".
func declareRequestZone(c *compiler, _ *level, d *conf.Directive) error {
	z := &requestZone{rate: 1000}
	named := ""
	for _, arg := range d.Args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "zone":
			named = arg
		case "rate":
			rate, ok := requestRate(value)
			if !ok {
				return d.Errorf("invalid rate \"%s\"", arg)
			}
			z.rate = rate
		case "sync":
		default:
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
	}
	if named == "" {
		return d.Errorf("\"limit_req_zone\" must have \"zone\" parameter")
	}
	var err error
	if z.zone, err = newZone(c, d, named, limit.NewBuckets); err != nil {
		return err
	}
	if err := z.checkUnique(d, c.engine.shared.requestZones[z.name].plain(), c.engine.shared.connZones[z.name] != nil); err != nil {
		return err
	}
	c.engine.shared.requestZones[z.name] = z
	c.deferred = append(c.deferred, func() error { return z.takeOver("limit_req", c.before.requestZones[z.name].plain()) })
	return nil
}

// requestRate parses "10r/s" or "30r/m".
func requestRate(s string) (int64, bool) {
	per := int64(1)
	text, ok := strings.CutSuffix(s, "r/s")
	if !ok {
		if text, ok = strings.CutSuffix(s, "r/m"); !ok {
			return 0, false
		}
		per = 60
	}
	n, ok := conf.Number(text)
	return int64(n) * 1000 / per, ok && n > 0
}

// limitReq compiles "limit_req zone=name [burst=number] [nodelay|delay=number]".
func limitReq(c *compiler, l *level, d *conf.Directive) error {
	s := limitReqSlot.edit(l)
	if l.first("limit_req") {
		s.limits = nil
	}
	var rule requestLimit
	for _, arg := range d.Args {
		key, value, _ := strings.Cut(arg, "=")
		n, isNumber := conf.Number(value)
		switch {
		case key == "zone":
			if rule.zone = c.engine.shared.requestZones[value]; rule.zone == nil {
				return errNoZone(d, value, c.engine.shared.connZones[value] != nil)
			}
		case key == "burst" && isNumber && n > 0:
			rule.burst = int64(n) * 1000
		case key == "burst":
			return d.Errorf("invalid burst value \"%s\"", arg)
		case key == "delay" && isNumber && n > 0:
			rule.delay = int64(n) * 1000
		case key == "delay":
			return d.Errorf("invalid delay value \"%s\"", arg)
		case arg == "nodelay":
			rule.delay = 1 << 60
		default:
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
	}
	if rule.zone == nil {
		return d.Errorf("\"limit_req\" must have \"zone\" parameter")
	}
	for _, have := range s.limits {
		if have.zone == rule.zone {
			return d.Errorf("\"limit_req\" directive is duplicate")
		}
	}
	s.limits = append(s.limits, rule)
	return nil
}

func limitReqStatus(_ *compiler, l *level, d *conf.Directive) (err error) {
	limitReqSlot.edit(l).status, err = limitStatus(d)
	return err
}

// limitRequests lets the request through, perhaps after a delay, or ends it with a status. A
// request is counted once, even if it is redirected.
func limitRequests(x *exchange) int {
	s := limitReqSlot.of(x.level)
	if x.main != nil || x.limits.req != "" {
		return 0
	}
	v := s.count(x)
	switch {
	case v.by == nil:
		return 0
	case v.full:
		x.limits.req = "REJECTED" + dryRunSuffix(s.dryRun)
		x.logAt(s.level, fmt.Sprintf("limiting requests%s, excess: %s by zone \"%s\"", dryRunText(s.dryRun), v.excessText(), v.by.name), "")
		if s.dryRun {
			return 0
		}
		return s.status
	case v.wait == 0:
		x.limits.req = "PASSED"
		return 0
	}
	x.limits.req = "DELAYED" + dryRunSuffix(s.dryRun)
	x.logAt(max(s.level-2, levelInfo), fmt.Sprintf("delaying request%s, excess: %s, by zone \"%s\"", dryRunText(s.dryRun), v.excessText(), v.by.name), "")
	if s.dryRun {
		return 0
	}
	x.wait(v.wait)
	return 0
}

// requestVerdict is the result of counting a request.
type requestVerdict struct {
	by     *requestZone // whose bucket decides; nil if the request has no key
	excess int64        // of by's bucket, in thousandths
	full   bool
	wait   time.Duration
}

func (v requestVerdict) excessText() string {
	return fmt.Sprintf("%d.%03d", v.excess/1000, v.excess%1000)
}

// count adds the request to each bucket, or to none if one is full.
func (s *limitReqSettings) count(x *exchange) (v requestVerdict) {
	now := time.Now()
	keys := make([]string, len(s.limits))
	for i, rule := range s.limits {
		if keys[i] = rule.zone.keyOf(x, 65535); keys[i] == "" {
			continue
		}
		excess, ok := rule.zone.memory.Take(keys[i], rule.zone.rate, rule.burst, now)
		if !ok {
			s.giveBack(keys[:i])
			return requestVerdict{by: rule.zone, excess: excess, full: true}
		}
		wait := time.Duration(max(excess-rule.delay, 0)) * time.Second / time.Duration(rule.zone.rate)
		if v.by == nil || wait > v.wait {
			v = requestVerdict{by: rule.zone, excess: excess, wait: wait}
		}
	}
	return v
}

// giveBack removes the request from the first buckets.
func (s *limitReqSettings) giveBack(keys []string) {
	for i, key := range keys {
		if key != "" {
			s.limits[i].zone.memory.GiveBack(key)
		}
	}
}
