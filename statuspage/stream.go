package statuspage

import (
	"bytes"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// stream sends the page's content in an event, now and after each Interval, until the client leaves or takes too long
// to accept one.
func (p *Page) stream(w *deadline.Bounded, r *http.Request) {
	defer p.streams.Add(-1)
	if p.streams.Add(1) > int64(p.o.MaxStreams) || p.isClosed() {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "no more streams", http.StatusServiceUnavailable)
		return
	}
	control := p.authorized(r)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	next := time.NewTicker(p.o.Interval)
	defer next.Stop()
	for {
		content, err := p.content(control)
		if err != nil {
			return
		}
		if _, err := w.Write(event(content)); err != nil || w.FlushError() != nil {
			return
		}
		select {
		case <-next.C:
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		}
	}
}

func (p *Page) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// event returns an event with the content, of which each line has a field of its own. A carriage return would end a
// line as well.
func event(content []byte) []byte {
	b := []byte("event: page\n")
	for line := range bytes.Lines(bytes.ReplaceAll(content, []byte("\r"), []byte(" "))) {
		b = append(append(append(b, "data: "...), bytes.TrimSuffix(line, []byte("\n"))...), '\n')
	}
	return append(b, '\n')
}
