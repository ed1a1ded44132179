package simulate

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// While a writer writes, other goroutines may set its deadlines, and use neither its other methods nor its Header.
func TestTwoUsesOfAWriter(t *testing.T) {
	for name, test := range map[string]struct {
		use    func(*guarded)
		broken int
	}{
		"Header":             {func(g *guarded) { g.Header() }, 1},
		"Write":              {func(g *guarded) { _, _ = g.Write(nil) }, 1},
		"Flush":              {(*guarded).Flush, 1},
		"WriteContinue":      {(*guarded).WriteContinue, 1},
		"CloseAfterResponse": {(*guarded).CloseAfterResponse, 1},
		"Hijack":             {func(g *guarded) { _, _, _ = g.Hijack() }, 1},
		"SetReadDeadline":    {func(g *guarded) { _ = g.SetReadDeadline(time.Time{}) }, 0},
		"SetWriteDeadline":   {func(g *guarded) { _ = g.SetWriteDeadline(time.Time{}) }, 0},
		"EnableFullDuplex":   {func(g *guarded) { _ = g.EnableFullDuplex() }, 0},
	} {
		j := inBubble(t, mostSeconds, func(j *Journal) {
			j.start = time.Now()
			writer := waiting{httptest.NewRecorder(), make(chan struct{})}
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				g := w.(*guarded)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					g.WriteHeader(http.StatusEarlyHints)
				}()
				synctest.Wait()
				test.use(g)
				close(writer.unblock)
				<-ended
				test.use(g)
			})
			guard(j, &GatewayPlan{}, h, false, true).ServeHTTP(writer, httptest.NewRequest(http.MethodGet, "/1", nil))
		})
		if len(j.broken) != test.broken {
			t.Errorf("%s: %v", name, j.broken)
		}
	}
}

// A handler must not return while another goroutine uses its writer.
func TestUseBehindTheEnd(t *testing.T) {
	j := inBubble(t, mostSeconds, func(j *Journal) {
		j.start = time.Now()
		writer := waiting{httptest.NewRecorder(), make(chan struct{})}
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			go w.WriteHeader(http.StatusEarlyHints)
			synctest.Wait()
		})
		guard(j, &GatewayPlan{}, h, false, true).ServeHTTP(writer, httptest.NewRequest(http.MethodGet, "/1", nil))
		close(writer.unblock)
	})
	if len(j.broken) != 1 || j.broken[0].Rule != "use after end" {
		t.Errorf("%v", j.broken)
	}
}

// waiting is a writer that waits for unblock where it writes a 103.
type waiting struct {
	*httptest.ResponseRecorder
	unblock chan struct{}
}

func (w waiting) WriteHeader(status int) {
	if status == http.StatusEarlyHints {
		<-w.unblock
	}
}
