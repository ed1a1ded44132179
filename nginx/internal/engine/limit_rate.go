package engine

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// limitRateModule limits the rate of responses.
var limitRateModule = module{
	directives: []directive{
		{name: "limit_rate", compile: limitRate},
		{name: "limit_rate_after", compile: limitRateAfter},
	},
	variables: map[string]variable{"limit_rate": known(func(x *exchange) string { return strconv.FormatInt(x.rate.perSecond, 10) })},
	hooks:     hooks{write: limitedBody},
}

var limitRateSlot = newSlot(rateRule{})

// rateRule is limit_rate and limit_rate_after.
type rateRule struct {
	rate, after vars.Value // sizes
}

// rateState is the limit of one response.
type rateState struct {
	perSecond int64 // bytes of content; 0 is no limit, or that none has been chosen yet
	set       bool
}

// limitRate compiles "limit_rate rate": bytes per second, for each response.
func limitRate(c *compiler, l *level, d *conf.Directive) (err error) {
	limitRateSlot.edit(l).rate, err = parseSize(c, d)
	return err
}

func limitRateAfter(c *compiler, l *level, d *conf.Directive) (err error) {
	limitRateSlot.edit(l).after, err = parseSize(c, d)
	return err
}

// parseSize compiles a size with variables; a constant one is checked.
func parseSize(c *compiler, d *conf.Directive) (vars.Value, error) {
	v, err := c.value(d, d.Args[0])
	if err != nil {
		return v, err
	}
	if text, constant := v.Literal(); constant {
		if _, ok := conf.Size(text); !ok {
			return v, d.Invalid()
		}
	}
	return v, nil
}

// takeLimitRate stores the rate of an upstream's X-Accel-Limit-Rate.
func takeLimitRate(x *exchange, field string) {
	if field == "" {
		return // ParseInt would make an error
	}
	if n, err := strconv.ParseInt(field, 10, 64); err == nil && n >= 0 {
		x.rate = rateState{n, true}
	}
}

// setLimitRate implements "set $limit_rate size" (ngx_http_variable_set_limit_rate).
func setLimitRate(x *exchange, size string) {
	n, ok := conf.Size(size)
	if !ok {
		x.logError("invalid $limit_rate \"" + size + "\"")
		return
	}
	x.rate = rateState{n, true}
}

// limitsRate reports whether the rate of x's response may be limited.
func limitsRate(x *exchange) bool {
	rate, constant := limitRateSlot.of(x.level).rate.Literal()
	return x.rate.set || !constant || rate != "" || x.upstreamRate() > 0
}

// limitRate compiles "proxy_limit_rate rate": bytes per second that are read of an upstream, which is read as fast as its response
// is sent on.
func (f *family) limitRate(c *compiler, l *level, d *conf.Directive) (err error) {
	f.slot.edit(l).limitRate, err = parseSize(c, d)
	return err
}

// upstreamRate returns the rate of proxy_limit_rate for the response, 0 if there is none.
func (x *exchange) upstreamRate() int64 {
	if !x.proxy.responded || *passSlot.of(x.level) == nil {
		return 0
	}
	rate, _ := conf.Size(x.passSettings().limitRate.String(&x.Request))
	return max(rate, 0)
}

// limitedBody limits the rate of a response's body; it returns nil if there is no limit.
func limitedBody(x *exchange, w io.Writer) io.WriteCloser {
	toClient := limitedByClient(x, w)
	rate := x.upstreamRate()
	if rate == 0 {
		return toClient
	}
	if toClient != nil {
		w = toClient
	}
	return &limitedWriter{w: w, ctx: x.HTTP.Context(), rate: rate, start: time.Now()}
}

// limitedByClient limits the rate to the client; it returns nil if there is no limit.
func limitedByClient(x *exchange, w io.Writer) io.WriteCloser {
	rule := limitRateSlot.of(x.level)
	if !x.rate.set {
		x.rate.perSecond, _ = conf.Size(rule.rate.String(&x.Request))
		x.rate.set = true
	}
	rate := x.rate.perSecond
	if rate <= 0 {
		return nil
	}
	after, _ := conf.Size(rule.after.String(&x.Request))
	return &limitedWriter{w: w, ctx: x.HTTP.Context(), rate: rate, after: after, start: time.Now()}
}

// limitedWriter writes rate bytes per second, those of the first second at once, after the first ones (ngx_http_write_filter).
type limitedWriter struct {
	w           io.Writer
	ctx         context.Context
	rate, after int64
	start       time.Time
	sent        int64
}

// Write implements io.Writer.
func (l *limitedWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		allowed := l.after + l.rate + int64(time.Since(l.start).Seconds()*float64(l.rate)) - l.sent
		if allowed <= 0 {
			if err := l.wait(min(l.rate, 16<<10) - allowed); err != nil {
				return n, err
			}
			continue
		}
		m, err := l.w.Write(p[n:min(len(p), n+int(min(allowed, 1<<20)))])
		n, l.sent = n+m, l.sent+int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// wait sends what was written, and waits until that many bytes may follow.
func (l *limitedWriter) wait(bytes int64) error {
	if err := l.FlushError(); err != nil {
		return err
	}
	timer := time.NewTimer(time.Duration(float64(bytes) / float64(l.rate) * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

// FlushError sends what was written.
func (l *limitedWriter) FlushError() error {
	if f, ok := l.w.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return nil
}

// Close implements io.Closer.
func (l *limitedWriter) Close() error { return nil }
