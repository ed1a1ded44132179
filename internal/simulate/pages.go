package simulate

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// Page is what the program's own handler does with a request that is not proxied. It knows nothing of the proxy's care for
// its server: it leaves bodies, deadlines and responses behind as handlers do.
type Page int

const (
	// PageNone is a request that is proxied.
	PageNone Page = iota
	// PageUnread leaves the request's body.
	PageUnread
	// PageRead reads it before the response.
	PageRead
	// PageBeside reads it when the header of the response was sent.
	PageBeside
	// PageShort sends less than its Content-Length.
	PageShort
	// PageBroken panics behind a part of its content.
	PageBroken
	// PageInterim sends an interim response first.
	PageInterim
	// PageDeadline leaves deadlines behind.
	PageDeadline
	// PageSlow takes longer than the time for a header.
	PageSlow
	pages // how many there are
)

// cut reports whether the page is not sent to its end. One for HEAD looks whole.
func (p Page) cut() bool { return p == PageShort || p == PageBroken }

// pageDeadline is the time that PageDeadline leaves.
const pageDeadline = 5 * time.Second

// slowPage is how long PageSlow takes.
const slowPage = 31 * time.Second

// addPages chooses requests of HTTP/1 to the program's own handler.
func (p *Plan) addPages(c *Choices) {
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind != HTTP1 && client.Kind != HTTP10 || !c.Bool(5) || !p.Gateway.Server && client.fallsSilent() {
			continue // net/http's waits without a bound for the rest of a body that a handler has left
		}
		for k := range client.Requests {
			if e := &client.Requests[k]; c.Bool(2) && e.Kube == KubeNothing && !e.Slashes {
				e.Page = Page(1 + c.Int(int(pages)-1))
				if client.fallsSilent() && (e.Page == PageRead || e.Page == PageBeside) {
					e.Page = PageUnread // without ReadTimeout nothing ends the read
				}
			}
		}
	}
}

// fallsSilent reports whether the client, or its link, sends a part of something and then nothing.
func (c *ClientPlan) fallsSilent() bool {
	return c.silent() || slices.ContainsFunc(c.Requests, func(e ExchangePlan) bool { return e.Body.Cut && e.Body.How == FaultSilence })
}

// withPages serves the pages of a plan, and has next serve the rest.
func (g *gateway) withPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := tokenOf(r.URL.Path)
		if e := g.journal.exchanges[token]; e != nil && e.Page != PageNone {
			g.page(e, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pageText is the content of the page of a request, behind which may stand what was read of its body.
func (e *ExchangePlan) pageText() string { return fmt.Sprintf("page %d", e.Token) }

func (g *gateway) page(e *ExchangePlan, w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	text := e.pageText()
	switch e.Page {
	case PageRead:
		text = fmt.Sprint(text, readBody(r))
	case PageBeside:
		_ = control.EnableFullDuplex()
		_, _ = io.WriteString(w, text)
		_ = control.Flush()
		text = readBody(r)
	case PageShort:
		w.Header().Set("Content-Length", fmt.Sprint(len(text)+1))
	case PageBroken:
		_, _ = io.WriteString(w, text)
		_ = control.Flush()
		panic(http.ErrAbortHandler)
	case PageInterim:
		if g.plan.Gateway.Server || r.ProtoAtLeast(1, 1) { // net/http's sends it to clients of HTTP/1.0
			w.WriteHeader(http.StatusProcessing)
		}
	case PageDeadline:
		if g.plan.Gateway.Server { // that for writes hits the next response behind net/http's
			until := time.Now().Add(g.plan.takes(pageDeadline))
			_, _ = control.SetReadDeadline(until), control.SetWriteDeadline(until)
		}
	case PageSlow:
		time.Sleep(g.plan.takes(slowPage))
	}
	_, _ = io.WriteString(w, text)
}

// readBody reads a request's body, and returns what stands for it in a page.
func readBody(r *http.Request) string {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return " broken"
	}
	return fmt.Sprint(" of ", n)
}

// page: a page belongs to its request, and looks whole only if it is. Behind package server, without a fault of the client or
// its link, it is whole.
func (r *ruler) page() {
	o, e := r.o, r.e
	want := e.pageText()
	if e.Page == PageRead || e.Page == PageBeside {
		want = fmt.Sprint(want, " of ", e.requestLength())
	}
	if e.Method == http.MethodHead {
		want = ""
	}
	cut := e.Page.cut()
	switch whole := o.Whole && (!o.ByClose || r.resetsWhatIsCut()); {
	case len(r.sights) > 0:
		r.fail("page", "a target saw a request that is not proxied")
	case whole && cut && want != "":
		r.fail("whole", "the page looks whole with %q", o.Raw)
	case whole && o.Status == http.StatusOK && !cut && string(o.Raw) != want && !e.Body.Cut && len(r.client.Links.There) == 0:
		r.fail("page", "the client saw %q, want %q", o.Raw, want)
	case e.Page == PageInterim && r.client.Kind == HTTP1 && whole && o.Interim != 1 && !e.Expect:
		r.fail("interim", "the client saw %d interim responses", o.Interim)
	case r.client.Kind == HTTP10 && o.Interim > 0:
		r.fail("interim", "a client of HTTP/1.0 saw %d interim responses", o.Interim)
	case !o.Whole && !cut && r.owedPage():
		r.fail("served", "the client sees no whole page: %v", o.Err)
	}
}

// requestLength is the length of the request's body as the program's handler reads it.
func (e *ExchangePlan) requestLength() int64 {
	if !e.hasBody() {
		return 0
	}
	return e.requestWire().Size()
}

// owedPage reports whether the client must have seen the page.
func (r *ruler) owedPage() bool {
	e, c := r.e, r.client
	switch {
	case !r.lingers() || c.Pipelined || len(c.Links.There)+len(c.Links.Back) > 0 || e.GiveUp > 0 || e.HalfClose:
		return false
	case slices.ContainsFunc(c.Requests, func(e ExchangePlan) bool { return e.ReadAfter > 0 }):
		return false // the connection may be idle for too long before the client has read the response before
	case r.w.sockets != nil || r.behindEarly() || r.behindBroken():
		return false
	case e.Page == PageBeside && e.Expect && e.Manner == ExpectForEver:
		return false // both wait
	}
	return e.Large == 0
}
