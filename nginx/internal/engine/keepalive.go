package engine

import (
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// keepaliveModule bounds the life of clients' connections.
var keepaliveModule = module{
	directives: []directive{
		{name: "keepalive_requests", compile: setNumber(keepaliveSlot, func(k *clientKeepalive) *int { return &k.requests })},
		{name: "keepalive_time", compile: setDuration(keepaliveSlot, func(k *clientKeepalive) *time.Duration { return &k.time })},
		{name: "keepalive_timeout", compile: keepaliveTimeout},
	},
	hooks: hooks{header: limitConnection},
}

var keepaliveSlot = newSlot(clientKeepalive{timeout: 75 * time.Second, requests: 1000, time: time.Hour})

// clientKeepalive is how long a client's connections are kept.
type clientKeepalive struct {
	timeout  time.Duration
	said     string // value of the Keep-Alive field, in seconds; "" is none
	requests int
	time     time.Duration
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
// time. For others it sends how long they are kept.
func limitConnection(x *exchange, h http.Header) {
	k := keepaliveSlot.of(x.level)
	over := x.Conn.Requests.Load() >= int64(k.requests) || !x.Conn.Born.IsZero() && x.Start.Sub(x.Conn.Born) > k.time
	switch {
	case k.timeout == 0, over:
		h.Set("Connection", "close")
	case k.said != "" && k.said != "0" && x.HTTP.ProtoMajor == 1 && !x.HTTP.Close && h.Get("Connection") == "":
		h.Set("Keep-Alive", "timeout="+k.said)
	}
}
