package engine

import (
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// keepaliveRule is how long an upstream's connections are kept
// (ngx_http_upstream_keepalive_module.c). 0 is the library's default.
type keepaliveRule struct {
	max      int
	requests int
	time     time.Duration
	timeout  time.Duration
}

// set compiles keepalive and the related directives inside upstream.
func (k *keepaliveRule) set(d *conf.Directive) (err error) {
	switch d.Name {
	case "keepalive":
		n, ok := conf.Number(d.Args[0])
		if !ok || n == 0 {
			return d.Errorf("invalid value \"%s\" in \"keepalive\" directive", d.Args[0])
		}
		k.max = n
	case "keepalive_requests":
		k.requests, err = d.Number()
	case "keepalive_time":
		k.time, err = d.Duration()
	case "keepalive_timeout":
		k.timeout, err = d.Duration()
	}
	return err
}

// keepaliveTimeout compiles "keepalive_timeout time [header time]".
func keepaliveTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	if l.keepalive, err = d.Duration(); err != nil || len(d.Args) == 1 {
		return err
	}
	said, ok := conf.Duration(d.Args[1])
	if !ok {
		return d.Invalid()
	}
	l.keepaliveSaid = strconv.Itoa(int(said / time.Second))
	return nil
}

func keepaliveRequests(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.keepaliveRequests, err = d.Number()
	return err
}

func keepaliveTime(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.keepaliveTime, err = d.Duration()
	return err
}

// applyKeepalive closes a client's connection that has reached its number of requests or its
// time. For others it sends how long they are kept.
func (l *level) applyKeepalive(x *exchange, h http.Header) {
	over := x.Conn.Requests.Load() >= int64(l.keepaliveRequests) || !x.Conn.Born.IsZero() && x.Start.Sub(x.Conn.Born) > l.keepaliveTime
	switch {
	case l.keepalive == 0, over:
		h.Set("Connection", "close")
	case l.keepaliveSaid != "" && l.keepaliveSaid != "0" && x.HTTP.ProtoMajor == 1 && !x.HTTP.Close && h.Get("Connection") == "":
		h.Set("Keep-Alive", "timeout="+l.keepaliveSaid)
	}
}
