package simulate

import (
	"testing"
	"time"
)

// A filter that ends a response ends the exchange, also if the response's end was read while the request is still being written:
// time passes, though net/http's transport waits for the end of the request with a lock held that the response's Close needs.
func TestResponseEndsWhileItsRequestIsWritten(t *testing.T) {
	for length := int64(4100); length < 60<<10 && !t.Failed(); length += 1700 { // more than one Read, which find all of it
		plan := simplest()
		g := &plan.Gateway
		g.Transport, g.ResponseBuffer, g.BufferSize = true, 1, 1<<20
		g.Filters = []FilterPlan{{Kind: kindOf("Records"), A: 2}}
		plan.Clients[0].Kind = HTTP2
		e := &plan.Clients[0].Requests[0]
		e.Method, e.Body = "POST", BodyPlan{Length: 1000, Piece: 100, Pause: 20 * time.Millisecond}
		e.Responses = []ResponsePlan{{Status: 200, Early: true, Media: MediaLines, Body: BodyPlan{Length: length}}}
		if o := unbroken(t, plan).outcomes[1]; o.Whole {
			t.Error("the response is whole, which has a record that is too long")
		}
	}
}
