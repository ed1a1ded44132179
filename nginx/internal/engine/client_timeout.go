package engine

import "github.com/culvert-go/culvert/nginx/conf"

// clientBodyTimeout compiles "client_body_timeout time", for requests that go to
// an upstream: between two pieces of the body, not for all of it.
func clientBodyTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.bodyTimeout, err = d.Duration()
	return err
}

// sendTimeout compiles "send_timeout time", for answers of upstreams: between two
// pieces that the client takes.
func sendTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.sendTimeout, err = d.Duration()
	return err
}
