package wsupgrade

import (
	"bytes"
	"net"
	"net/http"
)

// AcceptFor is acceptFor, for the servers of tests.
var AcceptFor = acceptFor

// PassFrames runs bytes of a client through a codec in pieces, and returns what is passed on.
func PassFrames(pieces [][]byte, o *Observer) (passed []byte, err error) {
	var b bytes.Buffer
	var c codec = new(passthroughCodec)
	if o != nil {
		c = &inspectingCodec{o: o, fromClient: true, deflate: &deflate{takeover: true}}
	}
	for _, p := range pieces {
		if err := c.pass(p, &b); err != nil {
			return b.Bytes(), err
		}
		if b := c.atBoundary(); o != nil && !b {
			panic("not at a boundary")
		}
	}
	return b.Bytes(), c.flushHeld(&b)
}

// ExpectPong runs bytes through a passthroughCodec that expects the Pong to a ping.
func ExpectPong(pieces [][]byte, payload []byte) []byte {
	var b bytes.Buffer
	c := &passthroughCodec{pending: &pendingPing{payload: payload}}
	for _, p := range pieces {
		_ = c.pass(p, &b)
	}
	_ = c.flushHeld(&b)
	return b.Bytes()
}

// IsBetween reports whether the tunnel joins the two connections.
func IsBetween(t *Tunnel, client, target net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client == client && t.target == target
}

// NewStream returns an HTTP/2 stream as a connection.
func NewStream(w http.ResponseWriter, in *http.Request) net.Conn { return newStreamConn(w, in) }
