package wsupgrade

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/result"
)

// takeOver hands the 101 to the client and tunnels.
func takeOver(w http.ResponseWriter, in *http.Request, target *upstreamConn, resp *http.Response, protocol string) error {
	client, early, err := hijack(w, resp, protocol)
	if err != nil {
		return err
	}
	defer client.Close()
	t := newTunnel(client, target.Conn, lingerOf(protocol))
	defer context.AfterFunc(in.Context(), t.abort)()
	first := switchingHead(w.Header(), protocol)
	first.Write(target.early())
	if _, err := client.Write(first.Bytes()); err != nil {
		return &fault.Error{Kind: fault.ClientGone, Wrote: true, HeadSent: true, Err: err}
	}
	fromClient, fromTarget := t.run(early)
	if record := result.From(in.Context()); record != nil {
		record.BytesIn = fromClient
		record.BytesOut = fromTarget + int64(len(target.early()))
	}
	return nil
}

// hijack takes the client's connection over, with what the client sent behind
// its handshake. The 101's head is in w.Header() before, for the hooks of w's
// wrappers, and out of it again if the connection can't be had.
func hijack(w http.ResponseWriter, resp *http.Response, protocol string) (client net.Conn, early []byte, err error) {
	head.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	fields := w.Header()
	kept := fields.Clone()
	for name, values := range resp.Header {
		fields[name] = append(fields[name], values...)
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		clear(fields)
		maps.Copy(fields, kept)
		// A fault of this server's own, and certainly none of the target.
		err = errors.Join(errors.New("the client's connection can't be taken over"), err)
		return nil, nil, &fault.Error{Kind: fault.BadRequest, Wrote: true, Err: err}
	}
	_ = client.SetDeadline(time.Time{}) // the server's timeouts are not the tunnel's
	early, _ = buffered.Reader.Peek(buffered.Reader.Buffered())
	return client, early, nil
}

// switchingHead renders the head of the 101 from what the hooks left of it.
func switchingHead(fields http.Header, protocol string) *bytes.Buffer {
	head.SanitizeResponse(http.StatusSwitchingProtocols, fields, protocol)
	b := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = fields.Write(b)
	b.WriteString("\r\n")
	return b
}
