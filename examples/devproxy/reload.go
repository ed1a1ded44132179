package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"
)

// checkEvery is how often the file is looked at.
const checkEvery = time.Second / 2

// reloading serves by the rules of a file, and by its new ones when it has changed.
type reloading struct {
	started *config // with the address and the certificate that remain
	log     *log
	current atomic.Pointer[devProxy]
}

func newReloading(c *config, d *devProxy) *reloading {
	l := &reloading{started: c, log: d.log}
	l.current.Store(d)
	return l
}

func (l *reloading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.current.Load().ServeHTTP(w, r)
}

// close closes what the current rules hold.
func (l *reloading) close() { l.current.Load().close() }

// watch reads the file again each time that its content has changed, until ctx ends. One with an error, half of one that an
// editor is writing for instance, changes nothing.
func (l *reloading) watch(ctx context.Context, content []byte) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := readFile(l.started.file)
		if err != nil || bytes.Equal(changed, content) {
			continue // an editor may replace the file by another: it is missing for a moment
		}
		content = changed
		if err := l.apply(changed); err != nil {
			l.log.note(fmt.Sprintf("the rules remain as they were: %v", err))
		} else {
			l.log.note("new rules of " + l.started.file)
		}
	}
}

// apply makes the rules of the content current. Requests that are under way, and tunnels, end by the rules before.
func (l *reloading) apply(content []byte) error {
	c, err := parseConfig(l.started.file, content)
	if err != nil {
		return err
	}
	d, err := newDevProxy(c, l.log)
	if err != nil {
		return err
	}
	l.current.Swap(d).close()
	if c.Listen != l.started.Listen || !reflect.DeepEqual(c.HTTPS, l.started.HTTPS) {
		l.log.note("listen and https remain as they were until the next start")
	}
	return nil
}
