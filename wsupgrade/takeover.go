package wsupgrade

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/header"
)

// earlyBytes are the bytes that were received before the tunnel began.
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
	t.Client = clientAddr(in)
	if observer == nil {
		t.loops = f.loops
	}
	if isWebSocket(protocol) {
		t.up.codec, t.down.codec = newCodecs(observer, resp.Header)
	}
	return t, earlyBytes{fromClient, target.early()}, nil
}

// newCodecs returns the codecs of a WebSocket's two directions.
func newCodecs(o *Observer, response http.Header) (up, down codec) {
	if o == nil {
		return new(passthroughCodec), new(passthroughCodec)
	}
	upDeflate, downDeflate := negotiatedDeflate(response)
	return &inspectingCodec{o: o, fromClient: true, deflate: upDeflate}, &inspectingCodec{o: o, deflate: downDeflate}
}

// clientConn sends the client the header that opens the tunnel, and returns its connection with
// what it sent after its handshake.
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
	first := switchingHeader(w.Header(), protocol, clientside.HeaderFormat(w))
	if err := f.sendHeader(conn, first.Bytes()); err != nil {
		conn.Close()
		return nil, nil, &culvert.Error{Kind: culvert.ClientGone, BytesSent: true, HeaderSent: true, Err: err}
	}
	return conn, early, nil
}

// sendHeader sends the client of a connection that was taken over the header that opens its tunnel,
// within the handshake timeout: the connection may still be full of earlier responses, and no
// context ends a write.
func (f *Forwarder) sendHeader(conn net.Conn, header []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(f.handshakeTimeout))
	_, err := conn.Write(header)
	_ = conn.SetWriteDeadline(time.Time{})
	return err
}

// clientAddr returns the address of in's client.
func clientAddr(in *http.Request) string {
	if addr := client.Addr(in); addr.IsValid() {
		return addr.String()
	}
	return in.RemoteAddr
}

// hijack takes the client's connection over, with what the client sent after its handshake. The
// 101's header is put into w.Header() before, for the hooks of w's wrappers, and removed again if
// the connection can't be taken over.
func hijack(w http.ResponseWriter, resp *http.Response, protocol string) (conn net.Conn, early []byte, err error) {
	header.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	fields := w.Header()
	kept := fields.Clone()
	for name, values := range resp.Header {
		fields[name] = append(fields[name], values...)
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		clear(fields)
		maps.Copy(fields, kept)
		// A fault of this server, not of the target.
		err = errors.Join(errors.New("the client's connection can't be taken over"), err)
		return nil, nil, &culvert.Error{Kind: culvert.BadRequest, BytesSent: true, Err: err}
	}
	_ = conn.SetDeadline(time.Time{}) // the server's timeouts are not the tunnel's
	early, _ = buffered.Reader.Peek(buffered.Reader.Buffered())
	return conn, early, nil
}

// switchingHeader renders the header of the 101 as the hooks left it.
func switchingHeader(fields http.Header, protocol string, f fieldnames.Format) *bytes.Buffer {
	header.SanitizeResponse(http.StatusSwitchingProtocols, fields, protocol)
	if f.Names != nil {
		return switchingNamed(fields, f)
	}
	b := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = fields.Write(b)
	b.WriteString("\r\n")
	return b
}
