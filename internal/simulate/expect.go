package simulate

import "time"

// ExpectManner says what a client that sends "Expect: 100-continue" does (RFC 9110 section 10.1.1).
type ExpectManner int

const (
	// ExpectAWhile: it waits a while for a 100, and then sends the body.
	ExpectAWhile ExpectManner = iota
	// ExpectForEver: it waits for a 100 or the final response. In the latter case it sends no body.
	ExpectForEver
	// ExpectNot: it sends the body at once.
	ExpectNot
	// ExpectLeave: it waits a while, and disconnects.
	ExpectLeave
)

// String returns the manner.
func (m ExpectManner) String() string {
	return [...]string{"waits a while", "waits for ever", "does not wait", "leaves"}[m]
}

// newExpectManner chooses an ExpectManner.
func newExpectManner(c *Choices, e *ExchangePlan) {
	e.Manner = ExpectManner(c.Int(4))
	if e.Manner == ExpectLeave {
		e.Body.Cut, e.Body.CutAt, e.Body.How = true, 0, Pick(c, FaultReset, FaultFIN)
	}
}

// expectation records what a client has seen while it waits for a 100.
type expectation struct {
	continued chan struct{} // closed when a 100 is received
	responded chan struct{} // closed at the end of the final header, or of the connection
}

func newExpectation() *expectation {
	return &expectation{continued: make(chan struct{}), responded: make(chan struct{})}
}

// see closes the channel of an event. It is called by one goroutine.
func see(event chan struct{}) {
	select {
	case <-event:
	default:
		close(event)
	}
}

// waitToSend waits as the client does before it sends the body, and reports whether it sends it. It does not if the
// connection was closed.
func (w *world) waitToSend(e *ExchangePlan, a *expectation, closed <-chan struct{}) bool {
	if !e.Expect {
		return true
	}
	w.journal.manners.Add("expects 100 and "+e.Manner.String(), 1)
	switch e.Manner {
	case ExpectAWhile, ExpectLeave:
		w.sleep(e.Body.Pause + 5*time.Millisecond)
	case ExpectForEver:
		select {
		case <-a.continued:
		case <-closed:
			return false
		case <-a.responded:
			select {
			case <-a.continued: // both may be ready
			default:
				return false
			}
		}
	}
	return true
}

// continued: a client that waits for a 100 receives one, or a final response.
//
// Over real sockets the guard's body hides from net/http that the client waits: before it sends a refusal it waits for the body
// for the 5 seconds of clientbody.LeaveUnread, which are not scaled.
func (r *ruler) continued() {
	if r.w.sockets != nil || !r.e.Expect || r.e.Manner != ExpectForEver || r.client.Kind == HTTP2 || r.client.Pipelined || !r.o.LeftAlone || r.e.GiveUp > 0 || r.o.SentWhole || r.faulty() {
		return
	}
	for i := range r.e.Responses {
		if r.e.Responses[i].Never {
			return
		}
	}
	if !r.o.Continued && r.o.Status == 0 {
		r.fail("served", "a client that waits for a 100 gets no response")
	}
}
