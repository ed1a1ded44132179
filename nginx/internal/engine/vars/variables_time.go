package vars

import (
	"strconv"
	"sync/atomic"
	"time"
)

var timeVariables = map[string]Getter{
	"msec":         known(func(*Request) string { return thousandths(time.Now().UnixMilli()) }),
	"request_time": known(func(r *Request) string { return Seconds(time.Since(r.Start)) }),
	"time_iso8601": known(newClock("2006-01-02T15:04:05-07:00").read),
	"time_local":   known(newClock("02/Jan/2006:15:04:05 -0700").read),
}

// Seconds formats d as in nginx's logs: seconds with three digits of milliseconds.
func Seconds(d time.Duration) string { return thousandths(d.Milliseconds()) }

// thousandths formats n/1000; n is not negative.
func thousandths(n int64) string {
	var space [24]byte
	b := strconv.AppendInt(space[:0], n/1000, 10)
	n %= 1000
	return string(append(b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10)))
}

// clock formats the time once per second, as nginx does (ngx_time_update).
type clock struct {
	layout string
	now    atomic.Pointer[written]
}

type written struct {
	second int64
	text   string
}

func newClock(layout string) *clock { return &clock{layout: layout} }

func (c *clock) read(*Request) string {
	t := time.Now()
	if w := c.now.Load(); w != nil && w.second == t.Unix() {
		return w.text
	}
	w := &written{t.Unix(), t.Format(c.layout)}
	c.now.Store(w)
	return w.text
}
