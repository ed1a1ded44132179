package watchcodec

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
)

// wsWatch serves a watch over WebSocket, as k8s.io/apiserver's pkg/endpoints/handlers/watch.go
// does: an event is a message, a text one in JSON, and a binary one without the length prefix in
// protobuf. The server is watched over HTTP; the WebSocket is terminated here.
type wsWatch struct {
	w       http.ResponseWriter
	r       *http.Request
	cancel  context.CancelFunc // ends the watch when the client disconnects
	header  http.Header
	status  int
	conn    *websocket.Conn   // nil: the response is not a watch
	refusal *deadline.Bounded // ws.w, for a response that is not a watch; nil: there is none
	frames  framer
	max     int // bounds an event
	kind    int
	err     error

	protocol string // the subprotocol, "" for none
	returned bool   // next has returned and not panicked
}

// WebSocketWatch returns a filter that serves watches over WebSocket out of the watches that the next
// handler serves over HTTP. Other requests pass. Handshakes from pages of other sites are refused
// (403). An event has at most maxEvent bytes; 0 means DefaultMaxFrame.
//
// A bearer token that a client sends as a subprotocol, as browsers have to, is in the Authorization
// field of the request that the next handler receives, unless the request has that field already;
// the first other subprotocol is selected.
//
// The WebSocket is closed with the code 1000, as that of kube-apiserver is, when the next handler
// has returned and its last event is complete: the watch has timed out. A watch that was cut off is
// closed with 1011 (RFC 6455 section 7.4.1): the next handler has panicked, with
// http.ErrAbortHandler for instance as package proxy does, or its response ends within an event or
// is not a watch.
func WebSocketWatch(maxEvent int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if req, ok := Classify(r); ok && req.Verb == "watch" && websocket.IsWebSocketUpgrade(r) {
				serveWebSocket(next.ServeHTTP, w, r, maxEvent)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// serveWebSocket calls next for a plain watch and sends its response over the WebSocket that r
// requests. Handshakes from pages of other sites are refused (403).
func serveWebSocket(next func(http.ResponseWriter, *http.Request), w http.ResponseWriter, r *http.Request, maxEvent int) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	plain := withBearer(r).Clone(ctx)
	for name := range plain.Header {
		if name == "Upgrade" || name == "Connection" || strings.HasPrefix(name, "Sec-Websocket-") {
			delete(plain.Header, name)
		}
	}
	_, protocols, err := webSocketToken(r)
	if err != nil {
		refuse(w, r, NewFailure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, err.Error()))
		return
	}
	ws := &wsWatch{w: w, r: r, cancel: cancel, header: http.Header{}, max: maxEvent}
	if len(protocols) > 0 {
		ws.protocol = protocols[0]
	}
	defer ws.closeConn()
	next(ws, plain)
	ws.WriteHeader(http.StatusOK)
	ws.returned = true
}

func (ws *wsWatch) Header() http.Header { return ws.header }

// WriteHeader accepts the WebSocket if the response is a watch. Any other response is sent to the
// client unchanged.
func (ws *wsWatch) WriteHeader(status int) {
	if status < 200 || ws.status != 0 {
		return
	}
	ws.status = status
	if status != http.StatusOK {
		for name, values := range ws.header {
			ws.w.Header()[name] = values
		}
		ws.refusal = deadline.BoundOwn(ws.w, ws.r) // next can't bound it
		ws.refusal.WriteHeader(status)
		return
	}
	u := websocket.Upgrader{HandshakeTimeout: deadline.OwnTimeout}
	if ws.protocol != "" {
		u.Subprotocols = []string{ws.protocol}
	}
	clientbody.LeaveUnread(ws.w, ws.r) // for a handshake that the upgrader refuses; a WebSocket has no deadline
	if ws.conn, ws.err = u.Upgrade(ws.w, ws.r, nil); ws.err != nil {
		ws.refusal = deadline.BoundOwn(ws.w, ws.r) // the upgrader has responded
		ws.cancel()
		return
	}
	format, _ := FormatOf(ws.header.Get("Content-Type"))
	ws.frames, ws.kind = newFramer(format, ws.max), websocket.TextMessage
	if format == Protobuf {
		ws.kind = websocket.BinaryMessage
	}
	go ws.listen()
}

// listen reads the client's messages: it responds to pings, drops other messages, and ends the
// watch when the client disconnects.
func (ws *wsWatch) listen() {
	defer ws.cancel()
	ws.conn.SetReadLimit(64 << 10)
	for {
		if _, _, err := ws.conn.NextReader(); err != nil {
			return
		}
	}
}

// Write sends each complete event as a message.
func (ws *wsWatch) Write(p []byte) (int, error) {
	ws.WriteHeader(http.StatusOK)
	if ws.err != nil {
		return 0, ws.err
	}
	if ws.conn == nil {
		return ws.refusal.Write(p)
	}
	if ws.err = push(ws.frames, p, nil, ws.send); ws.err != nil {
		return 0, ws.err
	}
	return len(p), nil
}

// send sends an event as a message.
func (ws *wsWatch) send(event []byte, _ bool) error {
	_ = ws.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	return ws.conn.WriteMessage(ws.kind, event)
}

// Flush is for handlers that assert http.Flusher.
func (ws *wsWatch) Flush() { _ = ws.FlushError() }

// FlushError is for http.ResponseController. Messages are sent at once, so it only accepts the
// WebSocket, as a flush sends the header.
func (ws *wsWatch) FlushError() error {
	ws.WriteHeader(http.StatusOK)
	return ws.err
}

// closeCode returns the status code of the close: normal for a watch that has timed out, internal
// error for one that was cut off.
func (ws *wsWatch) closeCode() int {
	if ws.returned && ws.err == nil && !ws.frames.within() {
		return websocket.CloseNormalClosure
	}
	return websocket.CloseInternalServerErr
}

// closeConn closes the WebSocket, or ends the response that is not a watch.
func (ws *wsWatch) closeConn() {
	if ws.refusal != nil {
		ws.refusal.Leave()
	}
	if ws.conn == nil {
		return
	}
	message := websocket.FormatCloseMessage(ws.closeCode(), "")
	_ = ws.conn.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second))
	_ = ws.conn.Close() // listen ends with it
}
