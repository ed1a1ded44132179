package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// TestLargeObjectOverWebSocket: an object within MaxObject reaches a client that watches over
// WebSocket, even if it is larger than watchcodec.DefaultMaxFrame.
func TestLargeObjectOverWebSocket(t *testing.T) {
	leaktest.Check(t)
	server, p := newServer(t, false), newPaint()
	p.set("sky", "blue")
	large := strings.Repeat("x", watchcodec.DefaultMaxFrame/2) // is there twice
	server.Set(thing("a", [3]string{"sky", "", large}))
	views := newViews(t, view.Options{MaxObject: 4 * watchcodec.DefaultMaxFrame, SyncTimeout: time.Minute, InitialTimeout: time.Minute}, p)
	defer views.Close()
	s := wiretest.NewServer(views.Filter(server))
	defer s.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL, "http")+collectionPath+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, message, err := conn.ReadMessage(); err != nil || !strings.Contains(string(message), large) {
		t.Errorf("a message of %d bytes: %v", len(message), err)
	}
}
