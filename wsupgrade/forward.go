package wsupgrade

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/relay"
)

// Forward sends the upgrade that in requests to a target and returns the status of the target's
// response, 0 if there was none. in may be an extended CONNECT over HTTP/2 (RFC 8441; see package
// extendedconnect): the target is sent an HTTP/1.1 upgrade all the same, with a key of its own, and
// the client gets a 200 for its 101.
//
// in is the client's request as the filters left it. out is the outbound request, as an
// http.RoundTripper would take it: out.URL.Host is the address to dial, out.URL.Scheme "http" or
// "https", out.Host the Host field. Path and query are sent byte for byte: out.URL.Opaque if it is
// set, else RawPath where it decodes to Path. Of the protocols that it offers only the one that is
// allowed is sent. A body of in, which other protocols than websocket may have ("docker exec" has),
// is read to its end once the target is dialled, and sent with a Content-Length: at most 64 KiB
// (413), within HandshakeTimeout (408). It is kept in in.Body, so that a call for another target
// sends it again. A body of out is not sent. Hop-by-hop fields must have been removed, as
// filters.Chain and package proxy do. out is not changed.
//
// If the target responds with a 101 that is valid for what out requests, the client's connection is
// taken over through http.ResponseController, and Forward blocks until both sides have ended or
// in's context is done; it closes both connections. The 101's fields are in w.Header() before the
// connection is taken over, so that wrappers of w see its header like any other. Any other response
// is written to w, but for a 2xx to an extended CONNECT: it would open the client's tunnel, and is
// an error of kind Unsupported (501).
//
// During the handshake net/http treats a half-close of the client as a disconnect and cancels in's
// context; from the 101 on a half-close is passed on.
//
// An error is an *culvert.Error. If its HeaderSent is false, nothing was written and the caller must write
// the response, with Refuse for instance. If its BytesSent is false as well, the target has received
// nothing and the caller may retry on another target. The way in which a tunnel ends is not an
// error. If the Observer panics, both ends of the WebSocket are sent InternalError, and then
// Forward panics with the same value. So it does if w or in's body panics over HTTP/2, or a user's
// own connection, on any goroutine; then the other end of a WebSocket is sent InternalError, and
// other protocols are cut.
func (f *Forwarder) Forward(w http.ResponseWriter, in, out *http.Request) (status int, err error) {
	return f.upgrade(w, in, out, func(t *Tunnel, early earlyBytes) {
		defer context.AfterFunc(in.Context(), t.Abort)()
		t.run(early)
		if record := record.From(in.Context()); record != nil {
			record.BytesIn, record.BytesOut = t.Bytes()
		}
		t.repanic()
	})
}

// Start is Forward that returns when the tunnel is open, so that its handler can return as well:
// the tunnel then holds neither the request nor the goroutine of its connection, 2 KiB instead of
// 28 (see the package's documentation). The tunnel does not end with in's context, which net/http
// cancels when the handler returns, but with its ends, by Tunnel.Close or by its Registry. Filters
// around the handler see the request end early. ended, if not nil, is called when the tunnel has
// ended. An HTTP/2 stream ends with its handler, so there Start blocks until the tunnel has ended.
// If Start returns an error, or a status other than 101, ended is not called. A panic of ended, and
// one for which Forward would panic, is logged with slog.Default().
func (f *Forwarder) Start(w http.ResponseWriter, in, out *http.Request, ended func(*Tunnel)) (status int, err error) {
	ended = containPanic(ended)
	return f.upgrade(w, in, out, func(t *Tunnel, early earlyBytes) {
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

// upgrade checks the request, has it admitted, opens the tunnel and calls run with it.
func (f *Forwarder) upgrade(w http.ResponseWriter, in, out *http.Request, run func(*Tunnel, earlyBytes)) (status int, err error) {
	f.boundClientRead(w, in)
	if err := f.check(in, f.Protocol(in)); err != nil {
		return 0, err
	}
	admitted, err := f.registry.admit(in)
	if err != nil {
		return 0, err
	}
	opened := false
	defer func() {
		if !opened {
			admitted.release()
		}
	}()
	status, t, early, err := f.openWithin(admitted, w, in, out)
	if e := errs.As(err); e != nil && e.Target == "" && !e.ClientSide() {
		e.Target = out.URL.Host
	}
	if t != nil { // out is not referenced any more from here on
		opened = true
		t.admission = admitted
		admitted.register(t)
		run(t, early)
	}
	return status, err
}

// openWithin is open in the time that the registry allows.
func (f *Forwarder) openWithin(admitted *admission, w http.ResponseWriter, in, out *http.Request) (status int, t *Tunnel, early earlyBytes, err error) {
	bounded, done := admitted.bindContext(in)
	defer done() // also where a hook panics
	status, t, early, err = f.open(w, bounded, out)
	in.Body = bounded.Body // what was read of it is kept there for another attempt
	return status, t, early, admitted.refusal(bounded, err)
}

// open runs the handshake. It returns a nil tunnel if the target has not switched.
func (f *Forwarder) open(w http.ResponseWriter, in, out *http.Request) (status int, t *Tunnel, early earlyBytes, err error) {
	if protocol, ok := extended(out); ok {
		out = bridged(out, protocol)
	}
	// What out requests counts, not what in does: a hook may have changed it.
	protocol := header.RequestedProtocol(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Header: out.Header}, f.protocols)
	var observer *Observer
	if isWebSocket(protocol) {
		if hasBody(in) {
			return 0, nil, early, refusal(culvert.BadRequest, errors.New("a WebSocket handshake with a body"))
		}
		observer = f.observe(in)
		out = observer.offer(out)
	}
	conn, resp, err := f.requestUpgrade(w, in, out, protocol)
	if err != nil {
		return 0, nil, early, err
	}
	defer func() {
		if t == nil {
			conn.Close()
		}
	}()
	record.From(in.Context()).HeaderReceived(resp.StatusCode)
	if _, stream := extended(in); stream && resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		// It would open the client's tunnel (RFC 9110 section 9.3.6). Unsupported, since a target
		// that sends a page is not a bad one.
		return resp.StatusCode, nil, early, &culvert.Error{Kind: culvert.Unsupported, BytesSent: true, Err: errNotSwitched}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return resp.StatusCode, nil, early, f.relayResponse(w, in, out, conn, resp)
	}
	if err := validate(resp, out.Header, protocol); err != nil {
		return resp.StatusCode, nil, early, &culvert.Error{Kind: culvert.HandshakeFailed, BytesSent: true, Err: err}
	}
	if switching, err := f.modifySwitching(w, in, out, resp, protocol); !switching {
		return http.StatusSwitchingProtocols, nil, early, err
	}
	if names := fieldnames.UpgradeOf(out.Context()); names != nil {
		clientside.FormatHeader(w, names.Received)
	}
	t, early, err = f.takeOver(w, in, conn, resp, protocol, observer)
	if t != nil {
		t.Target = address(out.URL, isSecure(out.URL))
	}
	return resp.StatusCode, t, early, err
}

var errNotSwitched = errors.New("the target responds to the upgrade without switching")

// relayResponse relays a response that does not switch. The server keeps the client's connection,
// and reads early bytes as the next request.
func (f *Forwarder) relayResponse(w http.ResponseWriter, in, out *http.Request, conn *upstreamConn, resp *http.Response) error {
	stop := interruptWhenDone(in.Context(), conn)
	defer stop()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{resp.Body, conn} // closing net/http's own body would read it to its end first
	client := clientside.New(w, in)
	defer client.End()
	o := relay.Options{WriteTimeout: f.handshakeTimeout, Modify: relay.ModifyOf(out.Context())}
	if names := fieldnames.UpgradeOf(out.Context()); names != nil {
		o.Format = &names.Received
	}
	_, err := relay.Response(client, in, resp, o)
	return err
}
