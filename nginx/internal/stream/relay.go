package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// relay moves bytes, or datagrams, between a client and a target until one side has ended.
type relay struct {
	s                *Session
	a                *attempt
	proxy            *Proxy
	client, target   net.Conn
	release          func(failure error) // frees what the session holds; called once or more
	began            int64               // Unix time of the session's begin, for the limits
	upload, download int64

	active  atomic.Int64 // the time of the last transfer, since the relay's start
	delayed atomic.Int32 // directions that wait because of a limit: the other side is not to blame
	start   time.Time

	mu       sync.Mutex
	stop     context.CancelFunc
	ended    bool
	status   int
	text     string // for the log: why it has ended
	late     bool   // because nothing was moved
	failure  error  // of the target
	open     int    // directions that have not ended, for HalfClose
	requests int    // datagrams of the client
	replies  int    // datagrams of the target
}

// run returns the session's status.
func (r *relay) run(ctx context.Context) int {
	r.start, r.open = time.Now(), 2
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.stop = cancel
	defer context.AfterFunc(ctx, func() { // interrupts reads and writes
		r.end(statusOK, "")
		_ = r.client.SetDeadline(time.Unix(1, 0))
		_ = r.target.SetDeadline(time.Unix(1, 0))
	})()
	defer r.watch().Stop()
	up := direction{r: r, from: r.client, to: r.target, received: &r.s.received, sent: &r.a.sent, limit: limiter{rate: r.upload, began: r.began}}
	down := direction{r: r, from: r.target, to: r.client, received: &r.a.received, sent: &r.s.sent, upstream: true, limit: limiter{rate: r.download, began: r.began}}
	move := (*direction).bytes
	if r.s.udp {
		move = (*direction).datagrams
	}
	var moving sync.WaitGroup
	moving.Go(func() {
		returned := false
		defer func() {
			if !returned {
				r.end(statusFailed, "")
			}
		}()
		defer r.s.contain()
		move(&up, ctx)
		returned = true
	})
	move(&down, ctx)
	moving.Wait()
	r.log()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// end ends the relay. The first call counts.
func (r *relay) end(status int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(status, text)
}

func (r *relay) endLocked(status int, text string) {
	if !r.ended {
		r.ended, r.status, r.text = true, status, text
		r.stop()
	}
}

// log writes nginx's line about the end of a session.
func (r *relay) log() {
	r.mu.Lock()
	text, late := r.text, r.late
	r.mu.Unlock()
	switch {
	case text != "":
		r.s.logPlain(levelInfo, text+", "+r.counts()+r.s.bytes())
	case late && r.s.udp:
		r.s.Error("upstream timed out (110: Connection timed out)")
	case late:
		r.s.LogAt(levelInfo, "connection timed out (110: Connection timed out)")
	}
}

// touch records a transfer.
func (r *relay) touch() { r.active.Store(int64(time.Since(r.start))) }

// watch ends the relay when nothing has been moved for proxy_timeout. The timer that it returns is to be stopped.
func (r *relay) watch() *time.Timer {
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(r.proxy.Timeout, func() {
		<-armed
		idle := time.Since(r.start) - time.Duration(r.active.Load())
		switch left := r.proxy.Timeout - idle; {
		case r.delayed.Load() > 0:
			timer.Reset(r.proxy.Timeout)
		case left > 0:
			timer.Reset(left)
		default:
			r.timeOut()
		}
	})
	close(armed)
	return timer
}

// timeOut ends a relay in which nothing is moved.
func (r *relay) timeOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case !r.s.udp:
		r.late = true
		r.endLocked(statusOK, "")
	case r.proxy.Responses < 0 || r.replies >= r.proxy.Responses*r.requests:
		r.endLocked(statusOK, "udp timed out")
	default:
		r.late, r.failure = true, errTimeout
		r.endLocked(statusBadGateway, "")
	}
}

var errTimeout = errors.New("no response")

// failed records that the target has not done what it should.
func (r *relay) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil && !r.ended {
		r.failure = err
	}
}

// targetFailure returns why the target counts as failed, nil if it does not.
func (r *relay) targetFailure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// direction moves what one side sends to the other.
type direction struct {
	r              *relay
	from, to       net.Conn
	received, sent *atomic.Int64
	upstream       bool // from is the target
	limit          limiter
}

// who names the side that sends.
func (d *direction) who() string {
	if d.upstream {
		return "upstream"
	}
	return "client"
}

// bytes moves bytes until from ends.
func (d *direction) bytes(ctx context.Context) {
	buf := make([]byte, d.r.proxy.BufferSize)
	if !d.upstream && !d.sendEarly() {
		return
	}
	for {
		size, ok := d.wait(ctx, len(buf))
		if !ok {
			return
		}
		n, err := d.from.Read(buf[:size])
		if n > 0 && !d.forward(ctx, buf[:n]) {
			return
		}
		if err == nil && n == len(buf) {
			err = d.bulk()
		}
		if err != nil {
			d.finish(err)
			return
		}
	}
}

// wait waits for what the rate allows.
func (d *direction) wait(ctx context.Context, most int) (int, bool) {
	if d.limit.rate == 0 {
		return most, true
	}
	d.r.delayed.Add(1)
	defer func() {
		d.r.touch()
		d.r.delayed.Add(-1)
	}()
	return d.limit.wait(ctx, most)
}

// forward sends what was received.
func (d *direction) forward(ctx context.Context, b []byte) bool {
	d.count(len(b))
	n, err := d.to.Write(b)
	d.sent.Add(int64(n))
	if err != nil {
		if !d.upstream {
			d.r.failed(err)
		}
		d.r.end(statusOK, "")
		return false
	}
	d.r.touch()
	if d.limit.rate == 0 {
		return true
	}
	d.r.delayed.Add(1)
	defer func() {
		d.r.touch()
		d.r.delayed.Add(-1)
	}()
	return d.limit.add(ctx, len(b))
}

// count counts what was received.
func (d *direction) count(n int) {
	d.r.touch()
	d.received.Add(int64(n))
	if d.upstream {
		d.r.a.mark(&d.r.a.first)
	}
}

// sendEarly sends the header of the PROXY protocol, and what was read of the client before.
func (d *direction) sendEarly() bool {
	r := d.r
	early := r.s.early
	r.s.early = nil
	d.received.Add(int64(len(early)))
	if r.proxy.Header > 0 && r.proxy.TLS == nil {
		early = r.proxy.withHeader(r.s, early)
	}
	if len(early) == 0 {
		return true
	}
	n, err := d.to.Write(early)
	d.sent.Add(int64(n))
	if err != nil {
		r.failed(err)
		r.end(statusOK, "")
	}
	return err == nil
}

// finish is called when from has ended.
func (d *direction) finish(err error) {
	r := d.r
	if d.upstream && err != io.EOF && !errors.Is(err, net.ErrClosed) && errors.Is(err, syscall.ECONNRESET) {
		r.failed(err)
	}
	if !r.proxy.HalfClose {
		r.end(statusOK, d.who()+" disconnected")
		return
	}
	if w, ok := d.to.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open--; r.open == 0 {
		r.endLocked(statusOK, d.who()+" disconnected")
	}
}
