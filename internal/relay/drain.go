package relay

import (
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/response"
)

// drainMost and drainTime bound what is read of a body only to keep its connection, and how long that may delay the
// content that a filter sends in its place.
const (
	drainMost = 64 << 10
	drainTime = 50 * time.Millisecond
)

// abandon stops the relaying of resp to a writer that discards its content. Neither the rest nor its trailers belong to
// the client's response.
func (o Options) abandon(w http.ResponseWriter, resp *http.Response) {
	response.Abandon(w)
	if o.Drain {
		drain(resp.Body)
	}
	resp.Trailer = nil
}

// drain reads body to its end, unless that is too long or takes too much time. Its failure is of no importance: it is
// closed then.
func drain(body io.ReadCloser) {
	var panicked any
	closed := make(chan struct{})
	timer := time.AfterFunc(drainTime, func() {
		defer close(closed)
		defer func() { panicked = recover() }() // of a transport's own body: it would end the program here
		body.Close()
	})
	defer func() {
		if timer.Stop() {
			return
		}
		if <-closed; panicked != nil {
			panic(panicked)
		}
	}()
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for left := drainMost; left > 0; {
		n, err := body.Read(buf[:min(left, len(buf))])
		if left -= n; err != nil {
			return
		}
	}
}
