package engine

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// clientBodyModule bounds the bodies of requests, and the time that clients take.
var clientBodyModule = module{
	directives: []directive{
		{name: "client_body_buffer_size", compile: setSize(clientBodySlot, func(s *clientBodySettings) *int64 { return &s.memory })},
		{name: "client_body_temp_path", compile: clientBodyTempPath},
		{name: "client_body_timeout", compile: setDuration(clientBodySlot, func(s *clientBodySettings) *time.Duration { return &s.timeout })},
		{name: "client_max_body_size", compile: setSize(clientBodySlot, func(s *clientBodySettings) *int64 { return &s.limit })},
		{name: "send_timeout", compile: setDuration(clientBodySlot, func(s *clientBodySettings) *time.Duration { return &s.sendTimeout })},
	},
	hooks: hooks{located: limitBody},
}

type clientBodySettings struct {
	limit   int64  // of a body's length; 0 is none
	memory  int64  // client_body_buffer_size
	tempDir string // client_body_temp_path; "" is the system's
	// timeout bounds the time between two reads of a body that is proxied, not that of the whole
	// body; sendTimeout that between two writes to the client of a response of an upstream, or of a file.
	timeout, sendTimeout time.Duration
}

var clientBodySlot = newSlot(clientBodySettings{limit: 1 << 20, memory: 16 << 10, timeout: time.Minute, sendTimeout: time.Minute})

// clientBodyTempPath sets the directory. Files in it have no names.
func clientBodyTempPath(c *compiler, l *level, d *conf.Directive) error {
	clientBodySlot.edit(l).tempDir = c.path(d.Args[0])
	return nil
}

// limitBody refuses a request whose announced content is too large, and bounds what is read of a
// chunked one: the proxy responds with 413 at the bound.
func limitBody(x *exchange, w http.ResponseWriter) int {
	limit := clientBodySlot.of(x.level).limit
	if limit == 0 || x.HTTP.Body == nil || x.HTTP.Body == http.NoBody {
		return 0
	}
	if x.HTTP.ContentLength > limit {
		x.logError("client intended to send too large body")
		return http.StatusRequestEntityTooLarge
	}
	if x.HTTP.ContentLength < 0 {
		x.HTTP.Body = http.MaxBytesReader(w, x.HTTP.Body, limit)
	}
	return 0
}
