package simulate

import "net/http"

// interim reads the header of an interim response over HTTP/2 on another goroutine and waits for it, as net/http's server
// does: unless the header has a length, and without waiting if the stream has ended. Without it, the network's mutex would
// order the server's goroutine and the handler, and hide from the race detector that the handler changes the map meanwhile.
func (g *guarded) interim(status int) (wait func()) {
	h := g.w.Header()
	if g.r.ProtoMajor != 2 || status > 199 || status == http.StatusSwitchingProtocols || h["Content-Length"] != nil || g.r.Context().Err() != nil {
		return func() {}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for range h {
		}
	}()
	return func() {
		select {
		case <-g.r.Context().Done():
		default:
			<-read
		}
	}
}
