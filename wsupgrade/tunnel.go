package wsupgrade

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// linger is how long one direction may stay silent after the other one has
// ended. A target's tail must not be cut off because the client is done sending
// (caddy#8026), but a side that never ends must not hold the tunnel for ever.
const linger = time.Minute

// tunnel copies between client and target until both directions have ended, one
// has failed, or ctx is done. early goes to the target first. It closes neither
// connection, but both are of no use afterwards.
func tunnel(ctx context.Context, client, target net.Conn, early []byte) (fromClient, fromTarget int64) {
	t := &pump{client: client, target: target}
	defer context.AfterFunc(ctx, t.abort)()
	up := make(chan int64, 1)
	go func() { up <- t.copy(target, client, early) }()
	fromTarget = t.copy(client, target, nil)
	return <-up, fromTarget
}

// pump is the state that the two directions of a tunnel share.
type pump struct {
	client, target net.Conn
	halfClosed     atomic.Bool
}

// copy moves bytes from src to dst until src ends, then closes dst's other half.
// A failure ends both directions.
func (t *pump) copy(dst, src net.Conn, early []byte) (n int64) {
	if len(early) > 0 {
		w, err := dst.Write(early)
		n = int64(w)
		if err != nil {
			t.abort()
			return n
		}
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for {
		if t.halfClosed.Load() {
			src.SetReadDeadline(time.Now().Add(linger))
		}
		r, readErr := src.Read(buf[:])
		if r > 0 {
			w, err := dst.Write(buf[:r])
			n += int64(w)
			if err != nil {
				t.abort()
				return n
			}
		}
		if readErr != nil {
			t.end(dst, src, readErr)
			return n
		}
	}
}

// end passes the end of src on to dst. Only a clean end is one: after an error
// nothing that dst still says can reach anyone.
func (t *pump) end(dst, src net.Conn, err error) {
	half, ok := dst.(interface{ CloseWrite() error })
	if err != io.EOF || !ok || half.CloseWrite() != nil {
		t.abort()
		return
	}
	t.halfClosed.Store(true)
	dst.SetReadDeadline(time.Now().Add(linger)) // wakes a read that began before
}

// abort ends every pending read and write of both sides.
func (t *pump) abort() {
	t.client.SetDeadline(past)
	t.target.SetDeadline(past)
}
