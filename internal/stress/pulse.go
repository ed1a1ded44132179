package main

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	beat   = 10 * time.Millisecond
	missed = slowTimeout / 8 // how late a beat may be
)

// pulse notices when the machine does not let this process run. Who waited for whom then, of a gateway, its client and
// its target in one process, is chance: the gateway may well see a target that takes most of an exchange's time.
type pulse struct {
	last atomic.Int64 // when the last beat was
	late atomic.Int64 // when one was late
}

// pulse starts one that beats until the run ends.
func (r *run) pulse() *pulse {
	p := new(pulse)
	p.last.Store(time.Now().UnixNano())
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(beat):
				if p.pause() > missed {
					p.late.Store(time.Now().UnixNano())
				}
				p.last.Store(time.Now().UnixNano())
			}
		}
	})
	r.atEnd(func() {
		close(stop)
		beating.Wait()
	})
	return p
}

// pause is the time since the last beat.
func (p *pulse) pause() time.Duration { return since(&p.last) }

// stopped reports whether a beat was late within d.
func (p *pulse) stopped(d time.Duration) bool { return p.pause() > missed || since(&p.late) < d }

func since(at *atomic.Int64) time.Duration { return time.Since(time.Unix(0, at.Load())) }
