package simulate

import (
	"io"
	"net/http"
	"strings"
)

// Asking says how a target requests a body that it is to wait for (Expect: 100-continue).
type Asking int

const (
	// AskAlone: by a 100 alone. Other interim responses follow the body.
	AskAlone Asking = iota
	// AskFirst: by a 100 that other interim responses follow at once.
	AskFirst
	// AskLast: by a 100 behind other interim responses.
	AskLast
)

// String returns the order.
func (a Asking) String() string {
	return [...]string{"alone", "before other interim responses", "behind other interim responses"}[a]
}

// addAsking chooses targets that send interim responses beside the 100.
func (p *Plan) addAsking(c *Choices) {
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			e := &p.Clients[i].Requests[k]
			if !e.Expect {
				continue
			}
			for n := range e.Responses {
				r := &e.Responses[n]
				if r.Asks = Asking(c.Int(3)); r.Asks != AskAlone && !r.Early {
					r.Interim = max(r.Interim, 1)
				}
			}
		}
	}
}

// hintsAsking reports whether the interim responses are sent beside the 100 that requests the body.
func (r *ResponsePlan) hintsAsking(req *http.Request) bool {
	return r.Asks != AskAlone && req.Header.Get("Expect") != "" && !r.Early
}

// ask requests the body.
func (t *target) ask(c *Conn, req *http.Request, token uint32, r *ResponsePlan) {
	text := "HTTP/1.1 100 Continue\r\n\r\n"
	if r.hintsAsking(req) {
		t.world.journal.manners.Add("target: 100 "+r.Asks.String(), 1)
		others := strings.Repeat(r.interim(token), r.Interim)
		if r.Asks == AskFirst {
			text += others
		} else {
			text = others + text
		}
	}
	_, _ = io.WriteString(c, text)
}
