package engine

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/nginx/conf"
)

// stubStatus compiles "stub_status": the location responds with counts of connections.
func stubStatus(_ *compiler, l *level, _ *conf.Directive) error {
	l.status = true
	return nil
}

// text returns the counts in nginx's words (ngx_http_stub_status_module.c).
func (c *counts) text() string {
	n, accepted := c.connections(), c.accepted.Load()
	return fmt.Sprintf("Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: %d Writing: %d Waiting: %d \n",
		n.Active, accepted, accepted, c.requests.Load(), n.Reading, n.Writing, n.Waiting)
}

// stubStatus sends the counts.
func (x *exchange) stubStatus(w http.ResponseWriter) int {
	if m := x.HTTP.Method; m != http.MethodGet && m != http.MethodHead {
		return http.StatusMethodNotAllowed
	}
	text := x.engine.shared.counts.text()
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method != http.MethodHead {
		_, _ = w.Write([]byte(text))
	}
	return 0
}
