package server

import (
	"net/http"
	"net/url"
	"sync"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
)

// Requests and what belongs to them are used again for handlers of this module, which say what they hold (package
// clientside). Any other handler may keep what it was given: for that all is made anew.

var exchanges = sync.Pool{New: func() any {
	return &exchange{lent: true, fields: make(http.Header), reply: make(http.Header)}
}}

// newExchange returns the exchange of the next request.
func (c *conn) newExchange() *exchange {
	if !c.lends {
		return &exchange{c: c}
	}
	x := exchanges.Get().(*exchange)
	x.c = c
	return x
}

// Hold implements clientside.Lender.
func (w *writer) Hold() { w.x.held.Store(true) }

// Memory implements clientside.Lender.
func (w *writer) Memory() []string {
	if !w.x.lent {
		return nil
	}
	return w.x.replyValues[:]
}

// mostFields is how many fields a map may have had that is used again.
const mostFields = 64

// giveBack has the memory of x used again, unless something may hold it: the request of a handler that is not ours, what
// Hold was called for, a context that was waited for, and a body, which another goroutine may read. Nothing of the
// server uses x any more.
func (x *exchange) giveBack() {
	if !x.lent || x.held.Load() || x.ctx.handedOut() || x.req.Body != http.NoBody ||
		len(x.fields) > mostFields || len(x.reply) > mostFields {
		return
	}
	fields, reply := x.fields, x.reply
	clear(fields)
	clear(reply)
	if bufpool.Poison {
		x.poison()
	}
	*x = exchange{lent: true, fields: fields, reply: reply}
	if bufpool.Poison {
		x.poison()
		return // it is never given to another request, so that each use shows
	}
	exchanges.Put(x)
}

// handedOut reports whether a context may be waited for, and so be held.
func (x *requestContext) handedOut() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.needed
}

// poison makes what was given back useless, for tests.
func (x *exchange) poison() {
	poisoned := []string{"poisoned"}
	x.fields["Poisoned"], x.reply["Poisoned"] = poisoned, poisoned
	for i := range x.values {
		x.values[i] = poisoned[0]
	}
	for i := range x.replyValues {
		x.replyValues[i] = poisoned[0]
	}
	x.req = http.Request{Method: "POISONED", Host: poisoned[0], URL: &url.URL{Path: "/poisoned"}, Header: x.fields, RequestURI: "/poisoned"}
	x.url = *x.req.URL
}

var _ clientside.Lender = (*writer)(nil)
