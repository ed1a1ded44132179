package engine

import "github.com/culvert-go/culvert/nginx/conf"

// clientBodyTimeout compiles "client_body_timeout time" for requests that are proxied: it bounds
// the time between two reads of the body, not that of the whole body.
func clientBodyTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.bodyTimeout, err = d.Duration()
	return err
}

// sendTimeout compiles "send_timeout time" for responses of upstreams: it bounds the time between
// two writes to the client.
func sendTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.sendTimeout, err = d.Duration()
	return err
}
