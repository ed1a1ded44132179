// Package proxy is the terminal handler of a gateway: it picks one target of
// an upstream, forwards the request to it and relays the answer, with no byte
// of path, query, body or trailer lost. Upgrades (WebSocket) are forwarded and
// tunnelled by package wsupgrade.
package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/result"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Options configures a Proxy. Only Upstream is needed.
type Options struct {
	// Upstream is the group of targets that requests go to. Required.
	Upstream *Upstream
	// Transport runs the plain exchanges; nil means the upstream's. Upgrades are
	// always dialled by Upgrades. A transport that tells nothing to
	// httptrace.ClientTrace gets no second target after a dial error that is not
	// a *net.OpError.
	Transport http.RoundTripper
	// Rewrite changes the outbound request before it is sent, once for each
	// request, before a target is picked. nil means Outbound.SetXForwarded and
	// nothing else. It runs after the client's hop-by-hop fields were removed,
	// so that a client can't name away what it adds.
	Rewrite func(*Outbound)
	// Upgrades forwards upgrades; nil means WebSocket with wsupgrade's defaults,
	// its same-origin check included, dialled as the upstream dials.
	Upgrades *wsupgrade.Forwarder
	// HeaderTimeout bounds the time that the target may take for the head of its
	// answer, counted from the last byte of the request. 0 means 60 seconds, a
	// negative value no bound.
	HeaderTimeout time.Duration
	// ErrorHandler answers a request that failed before a head was sent. It
	// must write an answer; Error.Status is the status to use. nil writes the
	// status and its text. It is not called where the client has gone.
	ErrorHandler func(http.ResponseWriter, *http.Request, *Error)
	// OnError is told every failure first, before ErrorHandler or the abort of an
	// answer of which the head is out. nil means nothing is told.
	OnError func(*http.Request, *Error)
}

// Proxy forwards requests to the targets of one upstream. It is safe for
// concurrent use.
//
// A failure after the answer's head was sent panics with http.ErrAbortHandler,
// so that a half-sent body never looks complete; the cause goes to
// Options.OnError and to the filters' Result first.
type Proxy struct {
	upstream     *Upstream
	exchange     exchanger
	rewrite      func(*Outbound)
	upgrades     *wsupgrade.Forwarder
	errorHandler func(http.ResponseWriter, *http.Request, *Error)
	onError      func(*http.Request, *Error)
}

// New checks the options and returns the proxy.
func New(o Options) (*Proxy, error) {
	if o.Upstream == nil {
		return nil, errors.New("proxy: Options.Upstream is nil")
	}
	p := &Proxy{
		upstream:     o.Upstream,
		rewrite:      o.Rewrite,
		upgrades:     o.Upgrades,
		errorHandler: o.ErrorHandler,
		onError:      o.OnError,
	}
	if p.rewrite == nil {
		p.rewrite = (*Outbound).SetXForwarded
	}
	if p.errorHandler == nil {
		p.errorHandler = writeError
	}
	if p.upgrades == nil {
		upgrades, err := wsupgrade.New(wsupgrade.Options{Dial: o.Upstream.dial, TLSConfig: o.Upstream.tlsConfig})
		if err != nil {
			return nil, err
		}
		p.upgrades = upgrades
	}
	if o.Transport == nil {
		o.Transport = o.Upstream.transport
	}
	p.exchange = &transportExchange{transport: o.Transport, headerTimeout: headerTimeout(o.HeaderTimeout)}
	return p, nil
}

func headerTimeout(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return 60 * time.Second
	case d < 0:
		return 0
	}
	return d
}

// ServeHTTP forwards r and relays the answer.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := result.From(r.Context())
	if record != nil {
		record.Upstream = p.upstream.name
	}
	if err := p.forward(w, r, record); err != nil {
		if record != nil {
			record.Err = err
		}
		p.fail(w, r, err)
	}
}

// forward asks one target after the other until one could be dialled.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, record *result.Result) *fault.Error {
	exchange := p.exchange
	protocol := p.upgrades.Protocol(r)
	if protocol != "" {
		exchange = upgradeExchange{p.upgrades}
	}
	o := newOutbound(r, protocol, p.upstream.scheme)
	p.rewrite(o)
	o.settle()

	client := clientKey(r.RemoteAddr)
	var done tried
	var last *fault.Error
	for {
		target := p.upstream.peers.pick(client, done)
		if target == nil {
			if last != nil {
				return last
			}
			return &fault.Error{Kind: fault.NoTarget, Target: p.upstream.name}
		}
		done = append(done, target)
		last = p.try(w, o, exchange, target, record)
		if last == nil {
			return nil
		}
		if last.Kind != fault.Dial || last.Wrote || last.HeadSent {
			return last
		}
	}
}

// try runs the exchange against one target and keeps the target's health.
func (p *Proxy) try(w http.ResponseWriter, o *Outbound, exchange exchanger, target *peer, record *result.Result) *fault.Error {
	o.Out.URL.Host = target.Addr
	start := time.Now()
	head, err := exchange.exchange(w, o.In, o.Out)
	if err != nil && err.Target == "" && !err.ClientSide() {
		err.Target = target.Addr
	}
	switch {
	case err == nil:
		p.upstream.peers.succeeded(target)
	case !err.ClientSide():
		p.upstream.peers.failed(target)
	}
	if record != nil {
		t := result.Try{Target: target.Addr, Status: head.status, Header: head.after, Total: time.Since(start)}
		if err != nil {
			t.Err = err
		}
		record.Tries = append(record.Tries, t)
	}
	return err
}
