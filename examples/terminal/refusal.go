package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/watchcodec/remotecommand"
)

// maxRefusal bounds what is kept of a refusal's body.
const maxRefusal = 64 << 10

// showRefusals opens the WebSocket of a browser itself if the API server refuses it, and reports
// the refusal in the channel for errors: a page can't read the response to a handshake that
// fails, and would show the code 1006 only. What this program refuses, other sites' pages for
// instance, gets no WebSocket.
func showRefusals(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !websocket.IsWebSocketUpgrade(r) || protocolOf(r.Header) != browsers {
			next.ServeHTTP(w, r)
			return
		}
		ctx, result := filters.WithResult(r.Context())
		refused := &refusal{ResponseWriter: w}
		next.ServeHTTP(refused, r.WithContext(ctx))
		if refused.status == 0 {
			return
		}
		var failed *culvert.Error
		if errors.As(result.Err, &failed) && failed.Status() < 500 {
			refused.replay()
			return
		}
		status := refused.describe(failed)
		log.Warn("no session", "session", r.URL.Path, "why", string(status))
		report(w, r, status)
	})
}

// refusal keeps a response that is neither an interim one nor a 101.
type refusal struct {
	http.ResponseWriter
	status int // 0: nothing is kept
	body   bytes.Buffer
}

func (r *refusal) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *refusal) WriteHeader(status int) {
	switch {
	case status < 200:
		r.ResponseWriter.WriteHeader(status)
	case r.status == 0:
		r.status = status
	}
}

func (r *refusal) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body.Write(p[:min(len(p), maxRefusal-r.body.Len())])
	return len(p), nil
}

// FlushError sends nothing: the response is kept.
func (r *refusal) FlushError() error { return nil }

// Flush is FlushError for handlers that know http.Flusher.
func (r *refusal) Flush() {}

// replay sends the response as it was.
func (r *refusal) replay() {
	r.ResponseWriter.WriteHeader(r.status)
	_, _ = r.ResponseWriter.Write(r.body.Bytes())
}

// describe returns a Status object with the API server's text, or with that of failed if it did
// not respond.
func (r *refusal) describe(failed *culvert.Error) []byte {
	var own struct{ Kind, Message string }
	if failed == nil && json.Unmarshal(r.body.Bytes(), &own) == nil && own.Kind == "Status" && own.Message != "" {
		return r.body.Bytes()
	}
	message := strings.TrimSpace(strings.ToValidUTF8(r.body.String(), "\uFFFD"))
	if failed != nil {
		message = fmt.Sprintf("the API server can't be reached: %v", failed.Err)
	} else if message == "" {
		message = http.StatusText(r.status)
	}
	status, _ := json.Marshal(map[string]any{ // of texts and a number, which can't fail
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": r.status,
		"message": fmt.Sprintf("%s (%d)", message, r.status),
	})
	return status
}

// report opens the WebSocket, sends the status and closes it.
func report(w http.ResponseWriter, r *http.Request, status []byte) {
	upgrader := websocket.Upgrader{Subprotocols: []string{string(browsers)}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the response is written
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	message, err := browsers.Append(nil, remotecommand.Message{Channel: remotecommand.Error, Data: status})
	if err != nil || conn.WriteMessage(websocket.TextMessage, message) != nil {
		return
	}
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	// What the page has sent is read: unread bytes would reset the connection before it has our message.
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	conn.SetReadLimit(maxRefusal)
	for err == nil {
		_, _, err = conn.ReadMessage()
	}
}
