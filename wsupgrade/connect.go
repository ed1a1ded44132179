package wsupgrade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/record"
)

// Connect returns a handler of CONNECT requests (RFC 9110 section 9.3.6), HTTP/1.1 and HTTP/2, that
// tunnels to the address that allow returns: a "host:port", or "unix:/path" if the Forwarder's Dial
// supports it. If allow returns an error, the response has its status if it is an *culvert.Error, else 403.
// Other methods get a 405. The header fields that filters set are sent with the 200 that opens a tunnel.
//
// A gateway that dials any address that a client names is an open door into its own network: allow
// must compare r.Host with a list, the addresses that names resolve to included, and authenticate
// the client. There is no default; Options.Protocols and Options.CheckOrigin mean nothing here.
// Connect returns an error if allow is nil.
func (f *Forwarder) Connect(allow func(*http.Request) (addr string, err error)) (http.Handler, error) {
	if allow == nil {
		return nil, errors.New("wsupgrade: Connect: nil allow")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header[protocolField] != nil {
			refuseMethod(w, r)
			return
		}
		returned := false
		defer clientbody.LeavePanicked(w, r, &returned)
		switch e := errs.As(f.connectTo(w, r, allow)); {
		case e == nil:
		case e.HeaderSent || e.Kind == culvert.ClientGone:
			panic(http.ErrAbortHandler)
		default:
			refuse(w, r, e)
		}
		returned = true
	}), nil
}

// refuseMethod refuses a request that is not a CONNECT.
func refuseMethod(w http.ResponseWriter, r *http.Request) {
	clientbody.LeaveUnread(w, r)
	w.Header().Set("Allow", http.MethodConnect)
	bounded := deadline.BoundOwn(w, r)
	http.Error(bounded, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
	bounded.Leave()
}

func (f *Forwarder) connectTo(w http.ResponseWriter, r *http.Request, allow func(*http.Request) (string, error)) error {
	addr, err := allow(r)
	if err != nil {
		if e := errs.As(err); e != nil {
			return e
		}
		return refusal(culvert.Forbidden, err)
	}
	admitted, err := f.registry.admit(r)
	if err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened { // also where Dial or a hook panics
			admitted.release()
		}
	}()
	t, early, err := f.openTo(admitted, w, r, addr)
	if err != nil {
		return err
	}
	opened = true
	t.admission = admitted
	admitted.register(t)
	defer context.AfterFunc(r.Context(), t.Abort)()
	t.run(early)
	if record := record.From(r.Context()); record != nil {
		record.BytesIn, record.BytesOut = t.Bytes()
	}
	t.repanic()
	return nil
}

// openTo dials addr and sends the client the response that opens the tunnel, in the time that the
// registry allows.
func (f *Forwarder) openTo(admitted *admission, w http.ResponseWriter, r *http.Request, addr string) (t *Tunnel, early earlyBytes, err error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // see Forward
	r, done := admitted.bindContext(r)
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), f.handshakeTimeout)
	defer cancel()
	target, err := dialOne(client.WithEnds(ctx, client.EndsOf(r)), f.ownDial(), addr)
	if err != nil {
		e := errs.As(handshakeError(r.Context(), nil, err))
		e.Target = addr
		return nil, early, admitted.refusal(r, e)
	}
	defer func() {
		if t == nil {
			target.Close()
		}
	}()
	from, fromClient, err := f.acceptConnect(w, r)
	if err != nil {
		return nil, early, admitted.refusal(r, err)
	}
	t = newTunnel(from, target, &f.limits)
	t.Protocol, t.Target, t.Client, t.loops = "connect", addr, clientAddr(r), f.loops
	return t, earlyBytes{fromClient: fromClient}, nil
}

// acceptConnect sends the client a 200 and returns its side of the tunnel. A 2xx to CONNECT has no
// Content-Length and no Transfer-Encoding (RFC 9110 section 9.3.6).
func (f *Forwarder) acceptConnect(w http.ResponseWriter, r *http.Request) (net.Conn, []byte, error) {
	if r.ProtoMajor == 2 {
		c := newStreamConn(w, r)
		w.WriteHeader(http.StatusOK)
		if err := c.flush(); err != nil {
			return nil, nil, &culvert.Error{Kind: culvert.ClientGone, HeaderSent: true, Err: err}
		}
		return c, nil, nil
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, refusal(culvert.BadRequest, err)
	}
	_ = conn.SetDeadline(time.Time{})
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err := f.sendHeader(conn, connectedHeader(w.Header(), clientside.HeaderFormat(w)).Bytes()); err != nil {
		conn.Close()
		return nil, nil, &culvert.Error{Kind: culvert.ClientGone, HeaderSent: true, Err: err}
	}
	return conn, early, nil
}

// connectedHeader renders the header of the 200 that opens a tunnel, as the hooks left it.
func connectedHeader(fields http.Header, f fieldnames.Format) *bytes.Buffer {
	header.SanitizeResponse(http.StatusOK, fields, "")
	delete(fields, "Content-Length")
	b := bytes.NewBufferString("HTTP/1.1 " + cmp.Or(f.Status, "200 Connection Established") + "\r\n")
	for name, value := range f.Names.Lines(fields) {
		writeField(b, name, value)
	}
	b.WriteString("\r\n")
	return b
}
