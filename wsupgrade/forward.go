package wsupgrade

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/internal/result"
)

// Forward sends the upgrade that in asks for to a target and returns the status
// of the target's answer, 0 if there was none. in may be an extended CONNECT over
// HTTP/2 (RFC 8441; see package extendedconnect): the target is asked for an HTTP/1.1
// upgrade all the same, with a key of its own, and the client gets a 200 for its 101.
//
// in is the client's request as the filters left it. out is the outbound
// request, as an http.RoundTripper would take it: out.URL.Host is the address to
// dial, out.URL.Scheme "http" or "https", out.Host the Host field. Path and query
// are sent byte for byte: out.URL.Opaque if it is set, else RawPath where it
// decodes to Path. Of the protocols that it offers only the one that is allowed is sent. A
// body of in, which other protocols than websocket may have ("docker exec" has), is read to its end
// once the target is dialled, and sent with a Content-Length: at most 64 KiB (413), within
// HandshakeTimeout (408). It stays in in.Body, so that a call for another target sends it again. Of
// out none is sent. Fields for one connection only must have been
// removed, as filters.Chain and package proxy do. out is not changed.
//
// If the target answers with a 101 that is valid for what out asks for, the
// client's connection is taken over through http.ResponseController, and
// Forward blocks until both sides have ended or in's context is done; it closes
// both connections. The 101's fields stand in w.Header() before the
// connection is taken, so that wrappers of w see its head like any other. Any
// other response is written to w, but for a 2xx to an extended CONNECT: it would open
// the client's tunnel, and is an error of kind Unsupported (501).
//
// While the handshake runs, net/http takes the client's end of stream for its
// leaving and cancels in's context; half-close is kept from the 101 on.
//
// An error is an *Error. If its HeadSent is false, nothing was written and the
// caller answers, with Refuse for instance; if its Wrote is false as well, the
// target has seen nothing and another may be tried. How a tunnel ends is no
// error. A panic of the Observer ends the WebSocket with InternalError at both ends, and is one of
// Forward then. So is one of w or of in's body over HTTP/2, or of a connection that is a user's, on whatever goroutine it
// happens; the other end of a WebSocket is sent InternalError, other protocols are cut.
func (f *Forwarder) Forward(w http.ResponseWriter, in, out *http.Request) (status int, err error) {
	return f.begin(w, in, out, func(t *Tunnel, early earlyBytes) {
		defer context.AfterFunc(in.Context(), t.Abort)()
		t.run(early)
		if record := result.From(in.Context()); record != nil {
			record.BytesIn, record.BytesOut = t.Bytes()
		}
		t.panicAgain()
	})
}

// Start is Forward that returns when the tunnel is open, so that its handler can
// return as well: the tunnel then holds neither the request nor the goroutine of its
// connection, 2 KiB instead of 28 (see the package's documentation). It does not end with in's context, which net/http cancels when the
// handler returns, but with its ends, by Tunnel.Close or by its Registry. Filters
// around the handler see the request end early; ended, which may be nil, is called
// when the tunnel has. An HTTP/2 stream ends with its handler, so there Start blocks
// until then. If Start returns an error, or another status than 101, it is
// not called. A panic of ended, or of one of those whose panics are Forward's, is logged
// with slog.Default().
func (f *Forwarder) Start(w http.ResponseWriter, in, out *http.Request, ended func(*Tunnel)) (status int, err error) {
	ended = contained(ended)
	return f.begin(w, in, out, func(t *Tunnel, early earlyBytes) {
		if !t.stream {
			t.start(early, ended)
			return
		}
		defer context.AfterFunc(in.Context(), t.Abort)()
		t.run(early)
		t.logPanic()
		if ended != nil {
			ended(t)
		}
	})
}

// begin does what comes before the tunnel, and hands that to run.
func (f *Forwarder) begin(w http.ResponseWriter, in, out *http.Request, run func(*Tunnel, earlyBytes)) (status int, err error) {
	f.limitClient(w, in)
	if err := f.check(in, f.Protocol(in)); err != nil {
		return 0, err
	}
	place, err := f.registry.enter(in)
	if err != nil {
		return 0, err
	}
	opened := false
	defer func() {
		if !opened {
			place.leave()
		}
	}()
	status, t, early, err := f.openWithin(place, w, in, out)
	if e := fault.As(err); e != nil && e.Target == "" && !e.ClientSide() {
		e.Target = out.URL.Host
	}
	if t != nil { // from here on nothing holds out
		opened = true
		t.place = place
		place.open(t)
		run(t, early)
	}
	return status, err
}

// openWithin is open in the time that the place's registry allows.
func (f *Forwarder) openWithin(place *place, w http.ResponseWriter, in, out *http.Request) (status int, t *Tunnel, early earlyBytes, err error) {
	bounded, done := place.handshake(in)
	defer done() // also where a hook panics
	status, t, early, err = f.open(w, bounded, out)
	in.Body = bounded.Body // what was read of it is kept there, for another attempt
	return status, t, early, place.refusal(bounded, err)
}

// open runs the handshake. The tunnel is nil if the target has not switched.
func (f *Forwarder) open(w http.ResponseWriter, in, out *http.Request) (status int, t *Tunnel, early earlyBytes, err error) {
	if protocol, ok := extended(out); ok {
		out = bridged(out, protocol)
	}
	// What out asks for counts, not what in does: a hook may have changed it.
	protocol := head.RequestedProtocol(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Header: out.Header}, f.protocols)
	var observer *Observer
	if isWebSocket(protocol) {
		if hasBody(in) {
			return 0, nil, early, refusal(fault.BadRequest, errors.New("a WebSocket handshake with a body"))
		}
		observer = f.observe(in)
		out = observer.offer(out)
	}
	conn, resp, err := f.answer(w, in, out, protocol)
	if err != nil {
		return 0, nil, early, err
	}
	defer func() {
		if t == nil {
			conn.Close()
		}
	}()
	result.Arrived(result.From(in.Context()), resp.StatusCode)
	if _, stream := extended(in); stream && resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		// It would open the client's tunnel (RFC 9110 section 9.3.6). A page does not make its target a bad one.
		return resp.StatusCode, nil, early, &fault.Error{Kind: fault.Unsupported, Wrote: true, Err: errNotSwitched}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return resp.StatusCode, nil, early, f.passOn(w, in, conn, resp)
	}
	if err := validate(resp, out.Header, protocol); err != nil {
		return resp.StatusCode, nil, early, &fault.Error{Kind: fault.Handshake, Wrote: true, Err: err}
	}
	t, early, err = f.takeOver(w, in, conn, resp, protocol, observer)
	if t != nil {
		t.Target = address(out.URL, isSecure(out.URL))
	}
	return resp.StatusCode, t, early, err
}

var errNotSwitched = errors.New("the target responds to the upgrade without switching")

// passOn relays an answer that does not switch. The client's connection stays
// with its server, which takes early bytes for the next request, as they are.
func (f *Forwarder) passOn(w http.ResponseWriter, in *http.Request, conn *upstreamConn, resp *http.Response) error {
	stop := endWith(in.Context(), conn)
	defer stop()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{resp.Body, conn} // closing net/http's own body would read it to its end first
	_, err := relay.Response(w, in, resp, relay.Options{WriteTimeout: f.timeout})
	return err
}
