package vars

import (
	"fmt"
	"time"
)

var timeVariables = map[string]Getter{
	"msec":         known(func(*Request) string { return msec(time.Now()) }),
	"request_time": known(func(r *Request) string { return Seconds(time.Since(r.Start)) }),
	"time_iso8601": known(func(*Request) string { return time.Now().Format("2006-01-02T15:04:05-07:00") }),
	"time_local":   known(func(*Request) string { return time.Now().Format("02/Jan/2006:15:04:05 -0700") }),
}

func msec(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

// Seconds writes d as nginx's logs do: seconds with three digits of
// milliseconds.
func Seconds(d time.Duration) string {
	ms := d.Milliseconds()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}
