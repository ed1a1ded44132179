package simulate

import (
	"slices"

	"github.com/culvert-go/culvert"
)

// FilterPlan is one filter of the gateway's chain and its options. Their meaning depends on
// the kind.
type FilterPlan struct {
	Kind int
	A, B int // below filterOptions
}

// filterOptions is how many alternatives A and B have.
const filterOptions = 6

// newFilterPlans chooses the chain, the outermost first.
func newFilterPlans(c *Choices) (list []FilterPlan) {
	for range c.Int(6) {
		list = append(list, FilterPlan{Kind: c.Int(plainKinds), A: c.Int(filterOptions), B: c.Int(filterOptions)})
	}
	return list
}

// filterKind is a filter of the chain with, in one place, what it is documented to do. A nil
// function changes nothing.
type filterKind struct {
	name string
	make func(g *gateway, p FilterPlan) (culvert.Filter, error)
	// request changes q as the filter changes a request.
	request func(p FilterPlan, q *hop)
	// response changes m as the filter changes a target's response to the request q.
	response func(p FilterPlan, q *hop, m *message)
}

// hop is a request as the outer filters of a place in the chain have left it.
type hop struct {
	e       *ExchangePlan
	upgrade bool
	accept  string // Accept-Encoding, "" for none
	wants   string // Accept, "" for none
	method  string
	coding  string // Content-Encoding of the body
	length  int64  // of the body's content as it is encoded here, or as a Content-Length says
	sized   bool   // by a Content-Length
	under   bool   // a field with an underscore in its name is there
	over    bool   // the body is longer than a filter lets it be read
	refused bool   // an outer filter must have responded itself
	trusted bool   // the peer is a proxy that a RealIP trusts
	panics  bool   // a handler may panic when something is written
	holds   bool   // an outer filter holds a response until its handler has returned, and responds with 502 if the handler breaks it off
	delays  bool   // an outer filter holds the header until the first byte
	may     []int  // the statuses with which outer filters may respond
}

// refuse records that the filter responds with status and does not pass the request on.
func (q *hop) refuse(status int) {
	q.refused = true
	q.may = append(q.may, status)
}

// message is a target's response on its way to the client.
type message struct {
	status   int
	media    string // Content-Type
	coding   string // Content-Encoding
	length   int64  // Content-Length, -1 for none
	wire     int64  // what the target sends
	body     func() []byte
	header   map[string]string                    // fields that the client must see, "" for none
	changed  bool                                 // the content is not the target's, byte by byte
	edited   bool                                 // record by record
	replaced bool                                 // by a content of the filter's own
	discards bool                                 // since the header, so that no content of the target's is of use
	cut      bool                                 // the client must see that it is broken off
	noTrail  bool                                 // the target's trailers no longer belong to it
	loose    bool                                 // there are two possible headers
	half     bool                                 // the encoded content that the target sends ends early
	decodes  bool                                 // a filter decodes what another one may have encoded
	encoded  bool                                 // a filter has encoded it, which may not know either that the content ends early
	ends     bool                                 // its target has encoded it, so that a decoder knows its end
	never    bool                                 // the client must not see it
	aborted  bool                                 // by a filter that knows nothing of the content
	names    []string                             // the filters that changed it
	instead  int                                  // the status with which a filter may respond in its place, without a target's token
	kube     *kubeContent                         // its objects; nil if it is not a readable list, watch or object
	flipped  *kubeContent                         // what kube was before the bytes were flipped
	settled  *kubeContent                         // a watch if the list that it needs was received; nil: it needs none
	told     bool                                 // a watch ends with an ERROR event, after which the response may break off
	matches  func(plain []byte, whole bool) error // if not nil, compares the content that the client read, in place of body
}

// bodyless reports whether the response has no content, regardless of its header.
func (m *message) bodyless(q *hop) bool {
	return q.method == "HEAD" || m.status == 204 || m.status == 304
}

// passage is an exchange as the chain is documented to change it.
type passage struct {
	plans  []FilterPlan
	hops   []hop // the request as each filter gets it
	last   hop   // the request as the proxy gets it
	proxy  *HooksPlan
	chunks bool // a response over HTTP/2 that announces trailers loses its Content-Length: over HTTP/1.1 they need chunks
}

// passage returns the passage of an exchange.
func (w *world) passage(e *ExchangePlan, kind ClientKind) *passage {
	p := &passage{plans: w.plan.Gateway.Filters, proxy: &w.plan.Gateway.Hooks, chunks: kind == HTTP1 && w.plan.Gateway.H2Targets}
	q := hop{e: e, upgrade: kind.upgrades(), accept: e.Accept, wants: e.Wants, method: e.Method, coding: e.Coding, under: e.Under}
	if kind.upgrades() {
		q.length = int64(e.Tunnel.Posted)
		q.sized = q.length > 0
	} else {
		q.length = e.requestWire().Size()
		q.sized = e.hasBody() && !e.Body.Chunked && kind != Malformed // some malformed ones have another framing
	}
	for _, f := range p.plans {
		p.hops = append(p.hops, q)
		if change := filterKinds[f.Kind].request; change != nil && !q.refused {
			change(f, &q)
		}
	}
	p.last = q
	return p
}

// response returns the nth attempt's response as the client must see it.
func (p *passage) response(attempt int) *message {
	e := p.last.e
	m := e.response(attempt).message(e, attempt)
	relayed := func(f [2]string) bool { return p.proxy.ResponseTrailer.want(f) != nil }
	if p.chunks && slices.ContainsFunc(e.response(attempt).Trailer, relayed) && !m.bodyless(&p.last) {
		m.length = -1
	}
	p.proxy.modified(m)
	for i := len(p.plans) - 1; i >= 0; i-- {
		kind := &filterKinds[p.plans[i].Kind]
		if kind.response == nil {
			continue
		}
		kind.response(p.plans[i], &p.hops[i], m)
	}
	return m
}

// replace records that a filter sends content of its own in place of the rest, which it does not need: what an inner filter
// does with that has no effect.
func (m *message) replace(media string) {
	m.cut = m.cut && m.replaced
	m.media, m.coding, m.length, m.changed, m.noTrail, m.replaced = media, "", -1, true, true, true
}

// acts records that a filter has changed the message.
func (m *message) acts(name string) { m.names = append(m.names, name) }
