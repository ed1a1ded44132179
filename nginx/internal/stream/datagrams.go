package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// maxDatagram is the length of the longest datagram of UDP.
const maxDatagram = 64 << 10

// datagrams moves the datagrams of a session of UDP.
func (d *direction) datagrams(ctx context.Context) {
	next := d.next()
	for {
		if _, ok := d.wait(ctx, maxDatagram); !ok {
			return
		}
		b, err := next()
		if err != nil {
			d.refused(err)
			return
		}
		d.count(len(b))
		if d.r.isEnded() || d.upstream && d.r.proxy.Responses == 0 {
			return
		}
		first := d.r.countDatagram(d.upstream) == 1
		if d.upstream {
			d.r.endIfComplete() // before the client receives it
		}
		if first && !d.upstream && d.r.proxy.Header > 0 {
			b = d.r.proxy.withHeader(d.r.s, b)
		}
		m, err := d.to.Write(b)
		d.sent.Add(int64(m))
		if d.upstream && errors.Is(err, net.ErrClosed) {
			d.r.end(statusOK, "")
			return
		}
		if !d.upstream {
			d.r.endIfComplete()
		}
		if d.limit.rate > 0 && !d.pause(ctx, len(b)) {
			return
		}
	}
}

// next returns what returns the next datagram of from. One of the target that is longer than proxy_buffer_size is cut, as in nginx:
// each session has such a buffer.
func (d *direction) next() func() ([]byte, error) {
	if c, ok := d.from.(*PacketConn); ok {
		return c.next
	}
	buf := make([]byte, min(d.r.proxy.BufferSize, maxDatagram))
	return func() ([]byte, error) {
		n, err := d.from.Read(buf)
		return buf[:n], err
	}
}

// pause waits as long as n bytes take at the limit's rate.
func (d *direction) pause(ctx context.Context, n int) bool {
	d.r.delayed.Add(1)
	defer func() {
		d.r.touch()
		d.r.delayed.Add(-1)
	}()
	return d.limit.add(ctx, n)
}

// refused is called when nothing can be received any more: an ICMP message has said that nothing listens, or the session is over.
func (d *direction) refused(err error) {
	r := d.r
	if !d.upstream {
		r.end(statusOK, "disconnected on shutdown") // the socket is closed
		return
	}
	if r.isEnded() {
		return
	}
	r.s.Error("recv() failed (" + reason(err) + ")")
	r.failed(err)
	r.countDatagram(true)
	r.endIfComplete()
	r.end(statusBadGateway, "")
}

// countDatagram counts a datagram, and returns how many there were in its direction.
func (r *relay) countDatagram(reply bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reply {
		r.replies++
		return r.replies
	}
	r.requests++
	return r.requests
}

// endIfComplete ends the session if there are as many datagrams as there will be (ngx_stream_proxy_test_finalize).
func (r *relay) endIfComplete() {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.proxy
	if p.Requests > 0 && r.requests < p.Requests || p.Responses < 0 || r.replies < p.Responses*r.requests {
		return
	}
	r.release(r.failure) // before the client gets the last datagram: its next one is another session
	r.endLocked(statusOK, "udp done")
}

// counts describes the datagrams of a session of UDP.
func (r *relay) counts() string {
	if !r.s.udp {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("packets from/to client:%d/%d, ", r.requests, r.replies)
}
