package engine

import (
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// keepaliveModule bounds the life of clients' connections.
var keepaliveModule = module{
	directives: []directive{
		{name: "keepalive_disable", compile: keepaliveDisable},
		{name: "keepalive_requests", compile: setNumber(keepaliveSlot, func(k *clientKeepalive) *int { return &k.requests })},
		{name: "keepalive_time", compile: setDuration(keepaliveSlot, func(k *clientKeepalive) *time.Duration { return &k.time })},
		{name: "keepalive_timeout", compile: keepaliveTimeout},
	},
	hooks: hooks{header: limitConnection},
}

var keepaliveSlot = newSlot(clientKeepalive{timeout: 75 * time.Second, requests: 1000, time: time.Hour, closes: []string{oldExplorer}})

// clientKeepalive is how long a client's connections are kept.
type clientKeepalive struct {
	timeout  time.Duration
	said     string // value of the Keep-Alive field, in seconds; "" is none
	requests int
	time     time.Duration
	closes   []string // browsers whose connections are not kept
}

// The browsers of keepalive_disable.
const (
	oldExplorer = "msie6"
	macSafari   = "safari"
)

// keepaliveDisable compiles "keepalive_disable none|browser ...".
func keepaliveDisable(_ *compiler, l *level, d *conf.Directive) error {
	k := keepaliveSlot.edit(l)
	k.closes = nil
	for _, name := range d.Args {
		switch name {
		case "none":
		case oldExplorer, macSafari:
			k.closes = append(k.closes, name)
		default:
			return d.Errorf("invalid value \"%s\"", name)
		}
	}
	return nil
}

// disabled reports whether the client is a browser whose connections are not kept. Old Explorers are only concerned by a POST.
func (k *clientKeepalive) disabled(r *http.Request) bool {
	for _, name := range k.closes {
		switch agent := r.UserAgent(); name {
		case oldExplorer:
			if r.Method == http.MethodPost && vars.OldExplorer(agent) {
				return true
			}
		case macSafari:
			if vars.MacSafari(agent) {
				return true
			}
		}
	}
	return false
}

// keepaliveTimeout compiles "keepalive_timeout time [header time]".
func keepaliveTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	k := keepaliveSlot.edit(l)
	if k.timeout, err = d.Duration(); err != nil || len(d.Args) == 1 {
		return err
	}
	said, ok := conf.Duration(d.Args[1])
	if !ok {
		return d.Invalid()
	}
	k.said = strconv.Itoa(int(said / time.Second))
	return nil
}

// limitConnection closes a client's connection that has reached its number of requests or its
// time, or that of a browser which can't keep it. For others it sends how long they are kept.
func limitConnection(x *exchange, h http.Header) {
	k := keepaliveSlot.of(x.level)
	if x.main == nil {
		clientside.SetIdleTimeout(x.w, k.timeout)
	}
	over := x.Conn.Requests.Load() >= int64(k.requests) || !x.Conn.Born.IsZero() && x.Start.Sub(x.Conn.Born) > k.time
	switch {
	case k.timeout == 0, over, k.disabled(&x.request):
		h.Set("Connection", "close")
	case k.said != "" && k.said != "0" && x.HTTP.ProtoMajor == 1 && !x.HTTP.Close && h.Get("Connection") == "":
		h.Set("Keep-Alive", "timeout="+k.said)
	}
}
