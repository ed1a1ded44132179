package wsupgrade

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
)

const (
	// linger is how long one side of a WebSocket may stay silent after the
	// other has ended. Its tail must not be cut off because the other is done
	// sending (caddy#8026), but RFC 6455 knows no half-open connection, so a
	// side that never ends must not hold the tunnel for ever.
	linger = time.Minute
	// drain is how long a tunnel goes on after one side stopped taking bytes.
	// What that side sent before is on its way and is still delivered.
	drain = 5 * time.Second
)

// lingerOf is how long one side may stay silent after the other has ended, 0 for
// as long as it likes: other protocols do use a half-open connection (docker
// attach reads the output long after it closed the input).
func lingerOf(protocol string) time.Duration {
	if isWebSocket(protocol) {
		return linger
	}
	return 0
}

// tunnel is a pair of connections. Each direction reads only when the last read
// was written, so a side that does not take bytes holds up the one that sends.
type tunnel struct {
	client, target net.Conn
	linger         time.Duration

	mu     sync.Mutex
	fixed  bool // the deadlines are final
	halved bool // one direction has ended
}

func newTunnel(client, target net.Conn, linger time.Duration) *tunnel {
	return &tunnel{client: client, target: target, linger: linger}
}

// run copies until both directions have ended, one has failed, or abort was
// called, and returns the bytes that each direction delivered. early goes to the
// target first. It closes neither connection, but both are of no use afterwards.
func (t *tunnel) run(early []byte) (fromClient, fromTarget int64) {
	up := make(chan int64, 1)
	go func() { up <- t.copy(t.target, t.client, early) }()
	fromTarget = t.copy(t.client, t.target, nil)
	return <-up, fromTarget
}

// copy moves bytes from src to dst until src ends, and returns how many were
// delivered.
func (t *tunnel) copy(dst, src net.Conn, early []byte) (n int64) {
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	pending, readErr := early, error(nil)
	for {
		if len(pending) > 0 {
			written, err := dst.Write(pending)
			n += int64(written)
			if err != nil {
				t.drain()
				// Bytes left unread would turn src's close into a reset, which may
				// overtake what src is still to be sent.
				_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{src}, buf)
				return n
			}
		}
		if readErr != nil {
			t.end(dst, readErr)
			return n
		}
		t.renew(src)
		var r int
		r, readErr = src.Read(buf)
		pending = buf[:r]
	}
}

// end passes the end of one direction on to dst, which may still send. Only a
// clean end is one: after an error nothing that dst says can reach anyone. A dst
// that can't be told just gets no more bytes.
func (t *tunnel) end(dst net.Conn, err error) {
	if err != io.EOF {
		t.abort()
		return
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	t.mu.Lock()
	t.halved = true
	t.mu.Unlock()
	t.renew(dst) // for a read that has begun before
}

// renew gives the direction that remains its time for the next read.
func (t *tunnel) renew(src net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.halved && !t.fixed && t.linger > 0 {
		_ = src.SetReadDeadline(time.Now().Add(t.linger))
	}
}

// drain lets both directions go on for a last while.
func (t *tunnel) drain() { t.fix(time.Now().Add(drain)) }

// abort ends every pending read and write of both sides, and all that follow.
func (t *tunnel) abort() { t.fix(past) }

// fix sets the deadlines for good. Only an earlier end can follow.
func (t *tunnel) fix(deadline time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fixed && deadline != past {
		return
	}
	t.fixed = true
	_ = t.client.SetDeadline(deadline)
	_ = t.target.SetDeadline(deadline)
}
