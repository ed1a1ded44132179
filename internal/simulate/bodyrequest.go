package simulate

import (
	"io"
	"net/http"
	"strings"
)

// BodyRequest is how a target requests a body that it is to wait for (Expect: 100-continue).
type BodyRequest int

const (
	// RequestAlone: by a 100 alone. Other interim responses follow the body.
	RequestAlone BodyRequest = iota
	// RequestFirst: by a 100 that other interim responses follow at once.
	RequestFirst
	// RequestLast: by a 100 behind other interim responses.
	RequestLast
)

// String returns the order.
func (b BodyRequest) String() string {
	return [...]string{"alone", "before other interim responses", "behind other interim responses"}[b]
}

// addBodyRequests chooses targets that send interim responses beside the 100.
func (p *Plan) addBodyRequests(c *Choices) {
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			e := &p.Clients[i].Requests[k]
			if !e.Expect {
				continue
			}
			for n := range e.Responses {
				r := &e.Responses[n]
				if r.Wants = BodyRequest(c.Int(3)); r.Wants != RequestAlone && !r.Early {
					r.Interim = max(r.Interim, 1)
				}
			}
		}
	}
}

// hintsBeside reports whether the interim responses are sent beside the 100 that requests the body.
func (r *ResponsePlan) hintsBeside(req *http.Request) bool {
	return r.Wants != RequestAlone && req.Header.Get("Expect") != "" && !r.Early
}

// requestBody requests the body.
func (t *target) requestBody(c *Conn, req *http.Request, token uint32, r *ResponsePlan) {
	text := "HTTP/1.1 100 Continue\r\n\r\n"
	if r.hintsBeside(req) {
		t.world.journal.manners.Add("target: 100 "+r.Wants.String(), 1)
		others := strings.Repeat(r.interim(token), r.Interim)
		if r.Wants == RequestFirst {
			text += others
		} else {
			text = others + text
		}
	}
	_, _ = io.WriteString(c, text)
}
