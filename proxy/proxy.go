package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/gate"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/internal/spool"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Proxy forwards requests to the targets that its upstream picks. It is safe for concurrent use by
// multiple goroutines.
//
// After a failure that follows the response's header, ServeHTTP panics with http.ErrAbortHandler,
// so that half a body never looks complete. Before that, Options.OnError is called with the cause,
// and the filters' Result holds it.
//
// The ResponseWriter must pass interim responses (1xx) on as such, as those of net/http's servers
// do. An httptest.ResponseRecorder takes the first one for the final response and refuses its body,
// so that the exchange is aborted as if the client had disconnected: a test whose target sends
// interim responses needs an httptest.Server.
type Proxy struct {
	o        Options
	group    *upstream.Group // Options.Upstream; nil if that is another Picker: exchanges run by the group of the lease then
	exchange exchanger       // with the targets of group
	upgrades *wsupgrade.Forwarder
	running  gate.Gate
	keeps    bool // a function of the program's is given requests, and may keep them

	requestBuffer *spool.Options // Options.RequestBuffer
}

// New checks the options and returns the proxy.
func New(o Options) (*Proxy, error) {
	keeps := o.Rewrite != nil || o.OnAttempt != nil || o.ModifyResponse != nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{o: o, upgrades: o.Upgrades, keeps: keeps, requestBuffer: o.RequestBuffer.options()}
	dial := wsupgrade.Options{Dial: upstream.Dial, DialTLS: upstream.Dial}
	if p.group, _ = o.Upstream.(*upstream.Group); p.group != nil {
		p.exchange = new(exchanges).over(&p.o, p.group)
		dial = wsupgrade.Options{Dial: p.group.Dial, DialTLS: upstream.Dial}
	}
	if p.upgrades == nil {
		if p.upgrades, err = wsupgrade.New(dial); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func init() {
	clientside.RegisterReturner((*Proxy).returns)
}

// returns reports whether nothing holds a request that p has served, but for what clientside.Hold was called for: the
// functions of a failure call it.
func (p *Proxy) returns() bool { return !p.keeps && clientside.Returns(p.o.Upstream) }

// ServeHTTP forwards r and relays the response.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	record := record.From(r.Context())
	if record != nil {
		record.Upstream = p.name()
	}
	if failed := p.serve(w, r, record); failed.err != nil {
		clientside.Hold(w) // functions of the program's get the request
		if record != nil {
			record.Err = failed.err
		}
		p.fail(w, r, failed)
	}
}

// name returns the name of the group, "" if the upstream picks among several.
func (p *Proxy) name() string {
	if p.group == nil {
		return ""
	}
	return p.group.Name()
}

// serve forwards r.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, record *record.Recorder) failed {
	if _, open := p.running.Enter(); !open {
		return failed{&culvert.Error{Kind: culvert.Busy, Target: p.name(), RetryAfter: time.Second, Err: errDraining}, unreadOf(r), nil}
	}
	defer p.running.Leave()
	return p.forward(w, r, record)
}

// bodyOptions are those of each request's body.
func (p *Proxy) bodyOptions() replay.Options {
	return replay.Options{ReadTimeout: p.o.ReadTimeout, WriteTimeout: p.o.WriteTimeout, Keep: p.o.Retry.KeepBody,
		AtOnce: p.o.StreamRequest, Buffer: p.requestBuffer}
}

// Drain refuses further requests (503), and ends the pauses of those that wait by Retry.Wait, which fail as without it. It returns when all requests in flight, tunnels included,
// have ended, or ctx's error if ctx ends first.
func (p *Proxy) Drain(ctx context.Context) error { return p.running.Drain(ctx) }
