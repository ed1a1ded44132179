package wsupgrade

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
)

// earlyBytes are what came before the tunnel began.
type earlyBytes struct{ fromClient, fromTarget []byte }

// takeOver hands the 101 to the client and returns the tunnel.
func (f *Forwarder) takeOver(w http.ResponseWriter, in *http.Request, target *upstreamConn, resp *http.Response, protocol string, observer *Observer) (*Tunnel, earlyBytes, error) {
	conn, fromClient, err := f.clientConn(w, in, resp, protocol)
	if err != nil {
		return nil, earlyBytes{}, err
	}
	t := newTunnel(conn, target.Conn, &f.limits)
	t.Protocol = protocol
	t.Subprotocol = resp.Header.Get("Sec-WebSocket-Protocol")
	t.Client = clientOf(in)
	if observer == nil {
		t.loops = f.loops
	}
	if isWebSocket(protocol) {
		t.up.codec, t.down.codec = codecs(observer, resp.Header)
	}
	return t, earlyBytes{fromClient, target.early()}, nil
}

// codecs are those of a WebSocket's two directions.
func codecs(o *Observer, answer http.Header) (up, down codec) {
	if o == nil {
		return new(passing), new(passing)
	}
	upDeflate, downDeflate := agreed(answer)
	return &inspected{o: o, fromClient: true, deflate: upDeflate}, &inspected{o: o, deflate: downDeflate}
}

// clientConn sends the client the head that opens the tunnel, and returns its side
// with what it sent behind its handshake.
func (f *Forwarder) clientConn(w http.ResponseWriter, in *http.Request, resp *http.Response, protocol string) (net.Conn, []byte, error) {
	if in.ProtoMajor == 2 {
		conn, err := openStream(w, in, resp, protocol)
		if err != nil {
			return nil, nil, err
		}
		return conn, nil, nil
	}
	conn, early, err := hijack(w, resp, protocol)
	if err != nil {
		return nil, nil, err
	}
	first := switchingHead(w.Header(), protocol)
	if err := f.sendFirst(conn, first.Bytes()); err != nil {
		conn.Close()
		return nil, nil, &fault.Error{Kind: fault.ClientGone, Wrote: true, HeadSent: true, Err: err}
	}
	return conn, early, nil
}

// sendFirst sends the client of a connection that was taken over the header that opens its tunnel, within the time of a
// handshake: the connection may still be full of earlier responses, and no context ends a write.
func (f *Forwarder) sendFirst(conn net.Conn, header []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(f.timeout))
	_, err := conn.Write(header)
	_ = conn.SetWriteDeadline(time.Time{})
	return err
}

// clientOf is the address of in's client.
func clientOf(in *http.Request) string {
	if addr := client.Addr(in); addr.IsValid() {
		return addr.String()
	}
	return in.RemoteAddr
}

// hijack takes the client's connection over, with what the client sent behind
// its handshake. The 101's head is in w.Header() before, for the hooks of w's
// wrappers, and out of it again if the connection can't be had.
func hijack(w http.ResponseWriter, resp *http.Response, protocol string) (conn net.Conn, early []byte, err error) {
	head.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	fields := w.Header()
	kept := fields.Clone()
	for name, values := range resp.Header {
		fields[name] = append(fields[name], values...)
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		clear(fields)
		maps.Copy(fields, kept)
		// A fault of this server's own, and certainly none of the target.
		err = errors.Join(errors.New("the client's connection can't be taken over"), err)
		return nil, nil, &fault.Error{Kind: fault.BadRequest, Wrote: true, Err: err}
	}
	_ = conn.SetDeadline(time.Time{}) // the server's timeouts are not the tunnel's
	early, _ = buffered.Reader.Peek(buffered.Reader.Buffered())
	return conn, early, nil
}

// switchingHead renders the head of the 101 from what the hooks left of it.
func switchingHead(fields http.Header, protocol string) *bytes.Buffer {
	head.SanitizeResponse(http.StatusSwitchingProtocols, fields, protocol)
	b := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = fields.Write(b)
	b.WriteString("\r\n")
	return b
}
