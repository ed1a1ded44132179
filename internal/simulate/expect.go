package simulate

import "time"

// ExpectManner is what a client does that expects to be asked for its body (RFC 9110 section 10.1.1).
type ExpectManner int

const (
	// ExpectAWhile: it waits a little, and sends the body.
	ExpectAWhile ExpectManner = iota
	// ExpectForEver: it waits until it is asked, or sees the final response, and then sends no body.
	ExpectForEver
	// ExpectNot: it sends the body at once.
	ExpectNot
	// ExpectLeave: it waits a little, and leaves.
	ExpectLeave
)

// String returns the manner.
func (m ExpectManner) String() string {
	return [...]string{"waits a while", "waits for ever", "does not wait", "leaves"}[m]
}

// newExpectManner chooses it.
func newExpectManner(c *Choices, e *ExchangePlan) {
	e.Manner = ExpectManner(c.Int(4))
	if e.Manner == ExpectLeave {
		e.Body.Cut, e.Body.CutAt, e.Body.How = true, 0, Pick(c, FaultReset, FaultFIN)
	}
}

// asking is what a client has seen that waits before it sends a body.
type asking struct {
	asked     chan struct{} // closed by a 100
	responded chan struct{} // closed by the end of the response's header, or of the connection
}

func newAsking() *asking {
	return &asking{asked: make(chan struct{}), responded: make(chan struct{})}
}

// see notes that an event has come. It is called by one goroutine.
func see(event chan struct{}) {
	select {
	case <-event:
	default:
		close(event)
	}
}

// waitToSend waits as a client does before it sends the body, and reports whether it sends it: not where its
// connection has been closed.
func (w *world) waitToSend(e *ExchangePlan, a *asking, closed <-chan struct{}) bool {
	if !e.Expect {
		return true
	}
	w.journal.manners.Add("expects 100 and "+e.Manner.String(), 1)
	switch e.Manner {
	case ExpectAWhile, ExpectLeave:
		w.sleep(e.Body.Pause + 5*time.Millisecond)
	case ExpectForEver:
		select {
		case <-a.asked:
		case <-closed:
			return false
		case <-a.responded:
			select {
			case <-a.asked: // both may be there
			default:
				return false
			}
		}
	}
	return true
}

// askedFor: a client that expects to be asked for its body, and waits for that, is asked or sees a response.
//
// Over real sockets the guard's body hides from net/http that the client waits: it looks for the body before it sends a refusal,
// for the 5 seconds of clientbody.LeaveUnread, which are not scaled.
func (r *ruler) askedFor() {
	if r.w.sockets != nil || !r.e.Expect || r.e.Manner != ExpectForEver || r.client.Kind == HTTP2 || r.client.Pipelined || !r.o.LeftAlone || r.e.GiveUp > 0 || r.o.SentWhole || r.faulty() {
		return
	}
	for i := range r.e.Responses {
		if r.e.Responses[i].Never {
			return
		}
	}
	if !r.o.Asked && r.o.Status == 0 {
		r.fail("served", "a client that waits to be asked for its body is left waiting")
	}
}
