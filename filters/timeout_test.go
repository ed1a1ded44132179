package filters_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A read of the body that waits for the client fails when the time has passed, also for handlers that do not observe
// their context. The status shows whether the handler was waiting for the client.
func TestTimeoutOfAnUpload(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Timeout(250 * time.Millisecond))
	var running sync.WaitGroup // all at once: they wait for the time, and for net/http's server, which holds a connection that it closes
	defer running.Wait()
	const whole, half = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo"
	for name, test := range map[string]struct {
		request string
		handler http.HandlerFunc
		status  int
	}{
		"the client is waited for": {half, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the body ends with %v", err)
			}
			<-r.Context().Done()
		}, 408},
		"after the body": {whole, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
		}, 504},
		"a read after the time": {half, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the body ends with %v", err)
			}
		}, 408},
		"before the body": {half, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504},
	} {
		run := func(t *testing.T) {
			client := wiretest.Dial(t, wiretest.Serve(t, f(test.handler)))
			client.Send(test.request)
			if name == "before the body" {
				client.Send("dy") // net/http reads it before it responds
			}
			client.Status(test.status)
			if test.status == 408 {
				if rest := client.Ended(); rest != "" {
					t.Errorf("and then %q", rest)
				}
			}
		}
		running.Go(func() { t.Run(name, run) })
	}
}
