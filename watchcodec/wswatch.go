package watchcodec

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
)

// wsWatch answers a watch over WebSocket, as k8s.io/apiserver's
// pkg/endpoints/handlers/watch.go does: an event is a message, in JSON a text, in
// protobuf a binary one without the length before it. The server behind is watched over
// HTTP; the WebSocket ends here.
type wsWatch struct {
	w       http.ResponseWriter
	r       *http.Request
	cancel  context.CancelFunc // ends the watch when the client goes
	header  http.Header
	status  int
	conn    *websocket.Conn   // nil: the answer is no watch
	refusal *deadline.Bounded // ws.w, of a response that is no watch; nil: there is none
	feed    *feed
	frames  interface{ Next() ([]byte, error) }
	kind    int
	err     error

	protocol string // the subprotocol, "" for none
	returned bool   // next has, and not panicked
}

// WebSocketWatch lets clients watch over WebSocket what next answers over HTTP. Other
// requests pass. Other sites' pages are refused (403).
//
// A bearer token that a client gives as a subprotocol, as browsers have to, is in the
// Authorization field of the request that next receives, unless there is one already; the first
// other subprotocol is chosen.
//
// The WebSocket ends with the code 1000, as that of kube-apiserver does, when next has returned behind the end of an event: the
// watch has had its time. A watch that was broken off ends with 1011 (RFC 6455 section 7.4.1): next has panicked, with
// http.ErrAbortHandler for instance as package proxy does, or what it has written ends within an event, or is none.
func WebSocketWatch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if req, ok := Classify(r); ok && req.Verb == "watch" && websocket.IsWebSocketUpgrade(r) {
			serveWebSocket(next.ServeHTTP, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveWebSocket runs next for a plain watch and hands what it answers to the WebSocket
// that r asks for. Other sites' pages are refused (403).
func serveWebSocket(next func(http.ResponseWriter, *http.Request), w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	plain := bearing(r).Clone(ctx)
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
	ws := &wsWatch{w: w, r: r, cancel: cancel, header: http.Header{}, feed: new(feed)}
	if len(protocols) > 0 {
		ws.protocol = protocols[0]
	}
	defer ws.end()
	next(ws, plain)
	ws.WriteHeader(http.StatusOK)
	ws.returned = true
}

func (ws *wsWatch) Header() http.Header { return ws.header }

// WriteHeader accepts the WebSocket if there is a watch. Any other answer is the client's
// as it is.
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
	clientbody.LeaveUnread(ws.w, ws.r) // where the upgrader refuses; a WebSocket has no deadline
	if ws.conn, ws.err = u.Upgrade(ws.w, ws.r, nil); ws.err != nil {
		ws.refusal = deadline.BoundOwn(ws.w, ws.r) // the upgrader has answered
		ws.cancel()
		return
	}
	ws.kind = websocket.TextMessage
	if format, _ := FormatOf(ws.header.Get("Content-Type")); format == Protobuf {
		ws.kind = websocket.BinaryMessage
		ws.frames = NewProtobufReader(ws.feed, 0)
	} else {
		ws.frames = NewJSONReader(ws.feed, 0)
	}
	go ws.listen()
}

// listen reads what the client sends: pings are answered, messages dropped, and when it
// goes the watch ends.
func (ws *wsWatch) listen() {
	defer ws.cancel()
	ws.conn.SetReadLimit(64 << 10)
	for {
		if _, _, err := ws.conn.NextReader(); err != nil {
			return
		}
	}
}

// Write sends whole events, as the filter's writers write them.
func (ws *wsWatch) Write(p []byte) (int, error) {
	ws.WriteHeader(http.StatusOK)
	if ws.err != nil {
		return 0, ws.err
	}
	if ws.conn == nil {
		return ws.refusal.Write(p)
	}
	ws.feed.p = p
	for {
		frame, err := ws.frames.Next()
		if err == errMore {
			return len(p), nil
		}
		if err == nil {
			_ = ws.conn.SetWriteDeadline(time.Now().Add(time.Minute))
			err = ws.conn.WriteMessage(ws.kind, frame)
		}
		if err != nil {
			ws.err = err
			return 0, err
		}
	}
}

// Flush serves handlers that assert http.Flusher.
func (ws *wsWatch) Flush() { _ = ws.FlushError() }

// FlushError serves http.ResponseController: messages are on their way already. It accepts
// the WebSocket, as a flush sends the head.
func (ws *wsWatch) FlushError() error {
	ws.WriteHeader(http.StatusOK)
	return ws.err
}

// code returns the status code of the end: that of a server whose watch has had its time, or that of one that was broken off.
func (ws *wsWatch) code() int {
	if ws.returned && ws.err == nil {
		ws.feed.p, ws.feed.ended = nil, true
		if _, err := ws.frames.Next(); err == io.EOF {
			return websocket.CloseNormalClosure
		}
	}
	return websocket.CloseInternalServerErr
}

// end closes the WebSocket.
func (ws *wsWatch) end() {
	if ws.refusal != nil {
		ws.refusal.Leave()
	}
	if ws.conn == nil {
		return
	}
	message := websocket.FormatCloseMessage(ws.code(), "")
	_ = ws.conn.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second))
	_ = ws.conn.Close() // listen ends with it
}
