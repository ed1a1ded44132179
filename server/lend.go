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

// lent is memory that is used with an exchange again and again.
type lent struct {
	fields, reply       http.Header // of the request and of the response
	values, replyValues [32]string  // theirs, and the names that are kept
}

var exchanges = sync.Pool{New: func() any {
	return &exchange{lent: &lent{fields: make(http.Header), reply: make(http.Header)}}
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
	if w.x.lent == nil {
		return nil
	}
	return w.x.lent.replyValues[:]
}

// mostFields is how many fields a map may have had that is used again.
const mostFields = 64

// giveBack has the memory of x used again, unless something may hold it: the request of a handler that is not ours, what
// Hold was called for, a context that was waited for, and a body, which another goroutine may read. Nothing of the
// server uses x any more.
func (x *exchange) giveBack() {
	l := x.lent
	if l == nil || x.held.Load() || x.ctx.handedOut() || x.req.Body != http.NoBody ||
		len(l.fields) > mostFields || len(l.reply) > mostFields {
		return
	}
	clear(l.fields)
	clear(l.reply)
	clear(l.values[:])
	clear(l.replyValues[:])
	if bufpool.Poison {
		x.poison()
	}
	*x = exchange{lent: l}
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
	l := x.lent
	l.fields["Poisoned"], l.reply["Poisoned"] = poisoned, poisoned
	for i := range l.values {
		l.values[i], l.replyValues[i] = poisoned[0], poisoned[0]
	}
	x.req = http.Request{Method: "POISONED", Host: poisoned[0], URL: &url.URL{Path: "/poisoned"}, Header: l.fields, RequestURI: "/poisoned"}
	x.url = *x.req.URL
}

var _ clientside.Lender = (*writer)(nil)
