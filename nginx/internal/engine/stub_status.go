package engine

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/nginx/conf"
)

// stubStatusModule responds with counts of connections (ngx_http_stub_status_module.c).
var stubStatusModule = module{
	directives: []directive{
		{name: "stub_status", compile: stubStatus},
	},
	variables: map[string]variable{
		"connections_active":  countOf(func(n connectionCounts) int { return n.active }),
		"connections_reading": countOf(func(n connectionCounts) int { return n.reading }),
		"connections_waiting": countOf(func(n connectionCounts) int { return n.waiting }),
		"connections_writing": countOf(func(n connectionCounts) int { return n.writing }),
	},
	active: func(l *level) bool { return *stubStatusSlot.of(l) },
	hooks:  hooks{content: serveStubStatus},
}

var stubStatusSlot = newLocalSlot[bool]()

// stubStatus compiles "stub_status": the location responds with counts of connections.
func stubStatus(_ *compiler, l *level, _ *conf.Directive) error {
	*stubStatusSlot.edit(l) = true
	return nil
}

// text returns the counts in nginx's words (ngx_http_stub_status_module.c).
func (c *counts) text() string {
	n, accepted := c.connections(), c.accepted.Load() // a request counts from its first byte on
	return fmt.Sprintf("Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: %d Writing: %d Waiting: %d \n",
		n.active, accepted, accepted, c.requests.Load()+int64(n.reading), n.reading, n.writing, n.waiting)
}

func countOf(which func(connectionCounts) int) variable {
	return known(func(x *exchange) string { return strconv.Itoa(which(x.engine.shared.counts.connections())) })
}

// serveStubStatus sends the counts.
func serveStubStatus(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if x.HTTP.Method != http.MethodGet && x.HTTP.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, true
	}
	text := x.engine.shared.counts.text()
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method != http.MethodHead {
		_, _ = w.Write([]byte(text))
	}
	return 0, true
}
