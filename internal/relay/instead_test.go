package relay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/relay"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// replacing returns a handler that relays a response in whose place instead responds.
func replacing(instead http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		resp := &http.Response{StatusCode: 200, ProtoMajor: 1, Header: http.Header{}, Body: http.NoBody}
		o := relay.Options{WriteTimeout: time.Minute, Modify: func(*http.Response) (http.Handler, error) { return instead, nil }}
		if _, err := relay.Response(clientside.New(w, r), r, resp, o); err != nil {
			panic(err)
		}
	}
}

// A client that accepts nothing of a replacement holds neither handler nor connection.
func TestReplacementThatIsNotAccepted(t *testing.T) {
	for name, size := range map[string]int{"short": 10, "long": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				wiretest.NotAccepted(t, replacing(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, strings.Repeat("x", size))
				}), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			})
		})
	}
}

// A replacement that writes nothing leaves no deadline for the outer handler.
func TestReplacementThatWritesNothing(t *testing.T) {
	for major := 1; major <= 2; major++ {
		w := &noDeadline{header: http.Header{}}
		replacing(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Instead", "yes") })(w, &http.Request{ProtoMajor: major})
		if w.set > 0 || w.header.Get("X-Instead") != "yes" {
			t.Errorf("HTTP/%d: %d deadlines, %v", major, w.set, w.header)
		}
	}
}

// noDeadline counts the deadlines that are set.
type noDeadline struct {
	http.ResponseWriter
	header http.Header
	set    int
}

func (w *noDeadline) Header() http.Header { return w.header }

func (w *noDeadline) SetWriteDeadline(time.Time) error {
	w.set++
	return nil
}
