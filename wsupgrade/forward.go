package wsupgrade

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/internal/result"
)

// Forward sends the upgrade that in asks for to a target and returns the status
// of the target's answer, 0 if there was none.
//
// out is the outbound request, as an http.RoundTripper would take it:
// out.URL.Host is the address to dial, out.URL.Scheme "http" or "https". If the
// target answers with a valid 101, the client's connection is taken over
// through http.ResponseController, and Forward blocks until both sides have
// ended or in's context is done. Any other answer is written to w.
//
// The fields of the 101 stand in w.Header() before the connection is taken, so
// that wrappers of w see its head like any other.
//
// An error is an *Error. If its HeadSent is false, nothing was written and the
// caller answers, with Refuse for instance; if its Wrote is false as well, the
// target has seen nothing and another may be tried.
func (f *Forwarder) Forward(w http.ResponseWriter, in, out *http.Request) (status int, err error) {
	protocol := f.Protocol(in)
	if err := f.check(in, protocol); err != nil {
		return 0, err
	}
	out.Body, out.ContentLength, out.TransferEncoding = nil, 0, nil
	conn, resp, err := f.answer(in.Context(), out)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		stop := context.AfterFunc(in.Context(), func() { conn.SetDeadline(past) })
		defer stop()
		return resp.StatusCode, relay.Response(w, in, resp)
	}
	if err := validate(resp, out, protocol); err != nil {
		return resp.StatusCode, &fault.Error{Kind: fault.Handshake, Wrote: true, Err: err}
	}
	return resp.StatusCode, takeOver(w, in, conn, resp, protocol)
}

// answer dials the target, sends the handshake and reads the head of the
// answer, all within the handshake timeout.
func (f *Forwarder) answer(in context.Context, out *http.Request) (*upstreamConn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(in, f.timeout)
	defer cancel()
	conn, err := f.connect(ctx, out)
	if err != nil {
		return nil, nil, handshakeError(in, nil, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(past) })
	resp, err := conn.handshake(out)
	if !stop() && err == nil {
		err = context.Cause(ctx) // the deadline is set, or about to be
	}
	if err != nil {
		conn.Close()
		return nil, nil, handshakeError(in, conn, err)
	}
	return conn, resp, nil
}

// takeOver hands the 101 to the client and tunnels.
func takeOver(w http.ResponseWriter, in *http.Request, target *upstreamConn, resp *http.Response, protocol string) error {
	head.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	for name, values := range resp.Header {
		w.Header()[name] = append(w.Header()[name], values...)
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return &fault.Error{Kind: fault.Handshake, Wrote: true, Err: errors.Join(errors.New("the client's connection can't be taken over"), err)}
	}
	defer client.Close()
	if err := client.SetDeadline(time.Time{}); err != nil { // the server's timeouts are not the tunnel's
		return clientGone(err)
	}
	head.SanitizeResponse(resp.StatusCode, w.Header(), protocol)
	var first bytes.Buffer
	first.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = w.Header().Write(&first)
	first.WriteString("\r\n")
	first.Write(target.early())
	if _, err := client.Write(first.Bytes()); err != nil {
		return clientGone(err)
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	fromClient, fromTarget := tunnel(in.Context(), client, target.Conn, early)
	if record := result.From(in.Context()); record != nil {
		record.BytesIn = fromClient
		record.BytesOut = fromTarget + int64(len(target.early()))
	}
	return nil
}

func clientGone(err error) error {
	return &fault.Error{Kind: fault.ClientGone, Wrote: true, HeadSent: true, Err: err}
}
