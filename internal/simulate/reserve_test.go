package simulate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Time passes while net/http's server sends a 100 (Continue) to a client that reads nothing, and its handler responds.
func TestContinueBeyondTheWindow(t *testing.T) {
	whole := 0 // bytes of the first response
	fill := func(w http.ResponseWriter) { _, _ = io.WriteString(w, fmt.Sprintf("%1000d", 1)) }
	for range 2 { // first to know how long the response is, which is the window then
		j := inBubble(t, mostSeconds, func(*Journal) {
			n := NewNetwork(new(Tally))
			window := whole
			if window == 0 {
				window = 64 << 10
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength == 0 {
					fill(w)
					return
				}
				_ = http.NewResponseController(w).EnableFullDuplex()
				var reading sync.WaitGroup
				reading.Go(func() { _, _ = r.Body.Read(make([]byte, 1)) })
				time.Sleep(time.Second)
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
				w.WriteHeader(http.StatusForbidden)
				_ = http.NewResponseController(w).Flush()
				reading.Wait()
			})}
			listener := n.Listen(gatewayAddr, 1)
			var served sync.WaitGroup
			served.Go(func() { _ = server.Serve(listener) })
			c, err := n.connect(context.Background(), "192.0.2.7", gatewayAddr, Dialling{}, Link{Window: 1 << 10}, Link{Window: window})
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if whole > 0 {
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
			}
			time.Sleep(time.Minute)
			if whole == 0 {
				resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(c, counter{&whole})), nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			c.Reset()
			_ = server.Close()
			served.Wait()
		})
		if len(j.broken) != 0 {
			t.Fatalf("broken rules %v", j.broken)
		}
	}
}

// counter counts what is written.
type counter struct{ n *int }

// Write counts p.
func (c counter) Write(p []byte) (int, error) {
	*c.n += len(p)
	return len(p), nil
}
