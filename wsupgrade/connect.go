package wsupgrade

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/fault"
)

// Connect returns a handler of CONNECT requests (RFC 9110 section 9.3.6), HTTP/1.1 and
// HTTP/2, that tunnels to whom allow names: a "host:port", or "unix:/path" if the
// Forwarder's Dial knows that. An error of allow is answered with its status if it is
// an *Error, else with 403. Other methods are answered with 405.
//
// A gateway that dials whatever a client names is an open door into its own network:
// allow must compare r.Host with a list, addresses that names lead to included, and
// know who asks. There is no default; New's Protocols and CheckOrigin mean nothing here.
// An error is returned if allow is nil.
func (f *Forwarder) Connect(allow func(*http.Request) (addr string, err error)) (http.Handler, error) {
	if allow == nil {
		return nil, errors.New("wsupgrade: Connect needs to be told whom to connect to")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header[protocolField] != nil {
			refuseMethod(w, r)
			return
		}
		returned := false
		defer clientbody.LeavePanicked(w, r, &returned)
		switch e := fault.As(f.connectTo(w, r, allow)); {
		case e == nil:
		case e.HeadSent || e.Kind == fault.ClientGone:
			panic(http.ErrAbortHandler)
		default:
			refuse(w, r, e)
		}
		returned = true
	}), nil
}

// refuseMethod refuses what is no CONNECT.
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
		if e := fault.As(err); e != nil {
			return e
		}
		return refusal(fault.Forbidden, err)
	}
	place, err := f.registry.enter(r)
	if err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened { // also where Dial or a hook panics
			place.leave()
		}
	}()
	t, early, err := f.openTo(place, w, r, addr)
	if err != nil {
		return err
	}
	opened = true
	t.place = place
	place.open(t)
	defer context.AfterFunc(r.Context(), t.Abort)()
	t.run(early)
	t.panicAgain()
	return nil
}

// openTo dials addr and tells the client that it is there, in the time that the place's registry allows.
func (f *Forwarder) openTo(place *place, w http.ResponseWriter, r *http.Request, addr string) (t *Tunnel, early earlyBytes, err error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // see Forward
	r, done := place.handshake(r)
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), f.timeout)
	defer cancel()
	target, err := f.dialOne(ctx, addr)
	if err != nil {
		e := fault.As(handshakeError(r.Context(), nil, err))
		e.Target = addr
		return nil, early, place.refusal(r, e)
	}
	defer func() {
		if t == nil {
			target.Close()
		}
	}()
	client, fromClient, err := f.established(w, r)
	if err != nil {
		return nil, early, place.refusal(r, err)
	}
	t = newTunnel(client, target, &f.limits)
	t.Protocol, t.Target, t.Client, t.loops = "connect", addr, clientOf(r), f.loops
	return t, earlyBytes{fromClient: fromClient}, nil
}

// established answers the client and returns its side of the tunnel. A 2xx to CONNECT
// has no Content-Length and no Transfer-Encoding (RFC 9110 section 9.3.6).
func (f *Forwarder) established(w http.ResponseWriter, r *http.Request) (net.Conn, []byte, error) {
	if r.ProtoMajor == 2 {
		c := newStreamConn(w, r)
		w.WriteHeader(http.StatusOK)
		if err := c.flush(); err != nil {
			return nil, nil, &fault.Error{Kind: fault.ClientGone, HeadSent: true, Err: err}
		}
		return c, nil, nil
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, refusal(fault.BadRequest, err)
	}
	_ = conn.SetDeadline(time.Time{})
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err := f.sendFirst(conn, []byte("HTTP/1.1 200 Connection Established\r\n\r\n")); err != nil {
		conn.Close()
		return nil, nil, &fault.Error{Kind: fault.ClientGone, HeadSent: true, Err: err}
	}
	return conn, early, nil
}
