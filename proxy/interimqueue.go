package proxy

import (
	"context"
	"net/http"
	"net/textproto"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// interimQueue holds the interim responses that a transport has received, and that the client has not accepted yet. They are
// written on a goroutine of their own: net/http's transport calls its hook where it reads from the target. One that waited
// for the client would leave the other streams of an HTTP/2 connection waiting, pings included, and would have the client's
// time taken for the target's (upstream.Options.HeaderTimeout). The bound of the headers of all of them bounds the queue.
type interimQueue struct {
	cancel context.CancelCauseFunc // of the attempt

	mu       sync.Mutex // guards what follows
	waiting  []interimResponse
	running  chan struct{} // closed when the goroutine has ended; nil: there is none
	finished bool          // nothing is queued any more
	panicked any           // what a wrapper of the writer's has panicked with
}

type interimResponse struct {
	status int
	fields http.Header
}

// queue takes an interim response. It may be called on any goroutine, and when the attempt has ended.
func (i *interimRelay) queue(status int, fields textproto.MIMEHeader) error {
	q := &i.later
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !i.take(status, fields):
		return http1.ErrHeaderTooLarge
	case q.finished || !i.wanted(status):
		return nil
	}
	q.waiting = append(q.waiting, interimResponse{status, interimFields(status, fields)})
	if q.running == nil {
		q.running = make(chan struct{})
		go i.sendQueued()
	}
	return nil
}

// sendQueued writes what is queued, until nothing is.
func (i *interimRelay) sendQueued() {
	q := &i.later
	defer func() {
		if v := recover(); v != nil { // here it would end the program
			q.panic(v)
		}
	}()
	begun := time.Now() // for the client one write follows the other
	for next, ok := q.next(); ok; next, ok = q.next() {
		i.send(next.status, next.fields)
		i.slow.note(begun)
	}
}

// next takes the first response of the queue, or ends the goroutine.
func (q *interimQueue) next() (next interimResponse, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.end()
		return next, false
	}
	next = q.waiting[0]
	q.waiting = q.waiting[1:]
	return next, true
}

// end is called where the goroutine ends. The caller holds q.mu.
func (q *interimQueue) end() {
	close(q.running)
	q.running = nil
}

// panic ends the queue and its attempt, and keeps v for the handler's goroutine.
func (q *interimQueue) panic(v any) {
	q.cancel(errPanicked)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.panicked, q.finished, q.waiting = v, true, nil
	q.end()
}

// finish waits until the client has all that is queued, or the response that is under way: behind it nothing reaches the
// writer. It panics with what a wrapper of the writer's has panicked with.
func (q *interimQueue) finish(all bool) {
	q.mu.Lock()
	q.finished = true
	if !all {
		q.waiting = nil
	}
	running := q.running
	q.mu.Unlock()
	if running != nil {
		<-running
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if v := q.panicked; v != nil {
		q.panicked = nil
		panic(v)
	}
}
