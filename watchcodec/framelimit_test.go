package watchcodec_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestNoLimitOfAFrame: the largest limit bounds no frame, and does not overflow where memory grows.
func TestNoLimitOfAFrame(t *testing.T) {
	object := `{"a":"` + strings.Repeat("x", 20<<10) + `"}`
	for f, stream := range map[watchcodec.Format]string{
		watchcodec.JSON:     object + "\n",
		watchcodec.Protobuf: "\x00\x00\x50\x08" + object,
	} {
		frame, err := newReaderWith(f, io.LimitReader(strings.NewReader(stream), int64(len(stream))), math.MaxInt).Next()
		if string(frame) != object || err != nil {
			t.Errorf("format %d: a frame of %d bytes, want %d: %v", f, len(frame), len(object), err)
		}
	}
}

func newReaderWith(f watchcodec.Format, src io.Reader, maxFrame int) interface{ Next() ([]byte, error) } {
	if f == watchcodec.Protobuf {
		return watchcodec.NewProtobufReader(src, maxFrame)
	}
	return watchcodec.NewJSONReader(src, maxFrame)
}

// TestLargeObjectOverWebSocket: an event whose object is within MaxObject reaches a client that
// watches over WebSocket, even if it is larger than DefaultMaxFrame.
func TestLargeObjectOverWebSocket(t *testing.T) {
	event := strings.Replace(pod("ADDED", "a", "yes", "7"), `"secret":"s"`, `"secret":"`+strings.Repeat("s", watchcodec.DefaultMaxFrame)+`"`, 1)
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: 2 * watchcodec.DefaultMaxFrame, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seen }}))
	s := wiretest.NewServer(filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, event)
	})))
	defer s.Close()
	conn, _, err := dialWatch(t, s, "/api/v1/pods?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, message, err := conn.ReadMessage(); string(message)+"\n" != event {
		t.Errorf("a message of %d bytes, want %d: %v", len(message), len(event)-1, err)
	}
	conn.Close()
}
